"""Where the host may wait for the device: `ldlm_lint.checkers.host_time_syncs`, read generously."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ldlm_lint.patterns import lazily
from ldlm_lint.python.host_names import CONVERTS, PREDICATES, READS
from ldlm_lint.shapes.homes import Homes
from ldlm_lint.shapes.meaning import closure
from ldlm_lint.shapes.outline import GAP, Outline, last_name, outline_of
from ldlm_lint.shapes.owners import Owner

_PLACES = (ast.Call, ast.FormattedValue, ast.BinOp, ast.If, ast.While, ast.IfExp, ast.Assert)
_WHOLE = (ast.Constant, ast.Starred, ast.JoinedStr, ast.Dict, ast.List, ast.Tuple)
_FINITE_TESTS = frozenset({"isnan", "isinf", "isfinite"})
OWN_STEPS = lazily(rb"backward" + GAP + rb"\(")
"""What a file with steps of its own shows: who calls its functions does not tell whether they run in one."""
_COMPARES = frozenset({"equal", "allclose"})


def may_wait(outline: Outline) -> bool:
    """Whether a place of the file may wait."""
    return any(True for _ in waiting(outline))


def waiting_functions(module: ast.Module, data: bytes) -> tuple[str, ...] | None:
    """The dotted names of the functions that may wait, as `waiting` finds them; None for a file with steps of its own."""
    if OWN_STEPS.search(data):
        return None
    return tuple(sorted({owner.scope for owner in waiting(outline_of(module, data))}))


def every_function(module: ast.Module, data: bytes) -> tuple[str, ...] | None:
    """The dotted names of all functions, and the module's; None for a file with steps of its own."""
    if OWN_STEPS.search(data):
        return None
    return tuple(sorted({owner.scope for owner in outline_of(module, data).owners}))


def waiting(outline: Outline) -> Iterator[Owner]:
    """The functions with a place that may wait; the module where it has one outside of them."""
    sure = {owner for owner, nodes in outline.places.near(("item",)) if any(map(_reads_number, nodes))}
    yield from sure
    finite = closure(outline, _FINITE_TESTS)
    for owner in outline.owners:
        places = [] if owner in sure else [one for one in outline.own(owner, *_PLACES) if _may_matter(one, finite)]
        if places:
            if outline.homes is None:
                outline.homes = Homes(outline)
            if any(_may_wait(one, owner, outline.homes, finite) for one in places):
                yield owner


def _reads_number(node: ast.AST) -> bool:
    """``x.item()``: what it is called of is a tensor unless the checker sees that it is not."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "item" and not node.keywords


def _may_matter(node: ast.AST, finite: frozenset[str]) -> bool:
    """What a place has to look like, whatever its values are."""
    if isinstance(node, ast.Call):
        name = last_name(node.func)
        return name in READS or name in CONVERTS or name == "to" or name in finite
    return not isinstance(node, ast.BinOp) or (isinstance(node.op, ast.Mod) and _is_text(node.left))


def _is_text(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        return _is_text(node.left) or _is_text(node.right)
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _may_wait(node: ast.AST, owner: Owner, homes: Homes, finite: frozenset[str]) -> bool:
    if isinstance(node, ast.Call):
        tests = last_name(node.func) in finite and bool(node.args)
        return (tests and homes.may_be_device(node.args[0], owner)) or _call_may_wait(node, owner, homes)
    if isinstance(node, ast.FormattedValue):
        return _is_shown(node.value, owner, homes)
    if isinstance(node, ast.BinOp):
        parts = node.right.elts if isinstance(node.right, ast.Tuple) else [node.right]
        return any(_is_shown(one.value if isinstance(one, ast.Starred) else one, owner, homes) for one in parts)
    return any(_decides(one, owner, homes) for one in _operands(getattr(node, "test", None)))


def _call_may_wait(call: ast.Call, owner: Owner, homes: Homes) -> bool:
    name, given = last_name(call.func), [*call.args, *(one.value for one in call.keywords)]
    if isinstance(call.func, ast.Attribute) and (name in READS or name == "to"):
        if name in READS and call.keywords:
            return False
        return bool(homes.trained) or homes.may_be_device(call.func.value, owner)
    return name in CONVERTS and any(_is_shown(one, owner, homes) for one in given)


def _is_shown(node: ast.expr, owner: Owner, homes: Homes) -> bool:
    return not isinstance(node, _WHOLE) and homes.may_be_device(node, owner)


def _operands(test: ast.expr | None) -> Iterator[ast.expr]:
    if isinstance(test, ast.BoolOp):
        for value in test.values:
            yield from _operands(value)
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _operands(test.operand)
    elif test is not None:
        yield test


def _decides(test: ast.expr, owner: Owner, homes: Homes) -> bool:
    """A comparison of a tensor, a predicate over one, or a name that may hold either."""
    if isinstance(test, ast.Call):
        name = last_name(test.func)
        if name in _COMPARES and any(homes.may_be_device(one, owner) for one in test.args):
            return True
        if name not in PREDICATES:
            return False
    shaped = isinstance(test, (ast.Call, ast.Compare, ast.BinOp, ast.UnaryOp, ast.Name))
    return shaped and homes.may_be_device(test, owner)
