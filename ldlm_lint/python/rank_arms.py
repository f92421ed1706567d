"""The branch of a test of the rank for all ranks but one: ``else`` after ``if rank == 0``."""

from __future__ import annotations

from collections.abc import Callable

from astroid import nodes

from ldlm_lint.patterns import lazily
from ldlm_lint.python.names import last_name
from ldlm_lint.python.scopes import bindings
from ldlm_lint.python.values import constant

# True in only one process, with any value there.
_IS_ONE = lazily(r"(?i)^(is_)?(main|master)$|is_?main|main_?proc|is_?master|master_?proc|is_?(rank_?zero|global_zero|world_process_zero|root|chief|primary)")
_IS_NUMBER = lazily(r"(?i)(^|_)rank$")
_EQUAL = {"==": True, "is": True, "in": True, "!=": False, "is not": False, "not in": False, ">": False}
_DEPTH = 3
_Speaks = Callable[[str], bool]


def is_of_others(test: nodes.NodeNG, holds: bool, speaks_of_rank: _Speaks, depth: int = 0) -> bool:
    """Whether all ranks but one come to where a test holds (or does not), for certain."""
    if isinstance(test, nodes.UnaryOp) and test.op == "not":
        return is_of_others(test.operand, not holds, speaks_of_rank, depth)
    if isinstance(test, nodes.BoolOp):
        found = [is_of_others(value, holds, speaks_of_rank, depth) for value in test.values]
        # If all parts must have this outcome, one that selects a single rank decides.
        every = (test.op == "and") is holds
        return any(found) and not (every and any(is_of_others(value, not holds, speaks_of_rank, depth) for value in test.values))
    if isinstance(test, nodes.Compare):
        return _is_of_others_by_number(test, holds, speaks_of_rank)
    if isinstance(test, nodes.Name) and depth < _DEPTH:
        held = bindings(test)
        value = getattr(held[0].parent, "value", None) if len(held) == 1 and isinstance(held[0].parent, nodes.Assign) else None
        if isinstance(value, (nodes.Compare, nodes.BoolOp, nodes.UnaryOp, nodes.Call)):
            return is_of_others(value, holds, speaks_of_rank, depth + 1)
    asked = last_name(test.func if isinstance(test, nodes.Call) else test)
    # ``if rank:`` holds for all but 0.
    return _IS_NUMBER.search(asked) is not None if holds else _IS_ONE.search(asked) is not None


def _is_of_others_by_number(test: nodes.Compare, holds: bool, speaks_of_rank: _Speaks) -> bool:
    """``rank == 0`` where it fails, ``rank != 0`` and ``rank > 0`` where they hold."""
    operator, right = test.ops[0]
    left = test.left.func if isinstance(test.left, nodes.Call) else test.left
    if len(test.ops) > 1 or operator not in _EQUAL or not speaks_of_rank(last_name(left)):
        return False
    options = right.elts if isinstance(right, (nodes.Tuple, nodes.List, nodes.Set)) else [right]
    numbers = [constant(one) for one in options]
    if not numbers or not all(type(one) is int for one in numbers) or (operator == ">" and numbers != [0]):
        return False
    return _EQUAL[operator] is not holds


__all__ = ["is_of_others"]
