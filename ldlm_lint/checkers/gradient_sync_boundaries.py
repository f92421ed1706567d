"""Tests for the last micro-batch of a step, as training loops write them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from astroid import nodes

from ldlm_lint.python.names import bindings
from ldlm_lint.python.values import constant, evaluate
from ldlm_lint.python.walks import nodes_of

_DEPTH = 4


@dataclass(frozen=True)
class Boundary:
    """A test that is true (``last``) or false for the last of ``count`` micro-batches."""

    last: bool
    count: nodes.NodeNG


def micro_boundary(test: nodes.NodeNG, block: list[nodes.NodeNG], depth: int = 0) -> Boundary | None:
    """The meaning of a test for micro-batches: ``(i + 1) % n == 0``, ``i % n != 0``, or a counter that a block
    resets.
    """
    if depth > _DEPTH:
        return None
    if isinstance(test, nodes.Name):
        return _of_name(test, block, depth)
    if isinstance(test, nodes.UnaryOp) and test.op == "not":
        inner = micro_boundary(test.operand, block, depth + 1)
        return Boundary(not inner.last, inner.count) if inner else None
    if isinstance(test, nodes.BoolOp):
        return next(filter(None, (micro_boundary(value, block, depth + 1) for value in test.values)), None)
    if isinstance(test, nodes.BinOp) and test.op == "%":
        return Boundary(False, test.right)
    if isinstance(test, nodes.Compare) and len(test.ops) == 1:
        return _comparison(test, block)
    return None


def repeats(count: nodes.NodeNG) -> bool:
    """Whether a step may have more than one micro-batch."""
    values = evaluate(count)
    return values is None or any(isinstance(value, int) and value > 1 for value in values)


def _of_name(name: nodes.Name, block: list[nodes.NodeNG], depth: int) -> Boundary | None:
    """A flag that holds such a test, or is set under one; its other values are constants."""
    found: list[Boundary] = []
    for value, statement in _values(name):
        boundary = None
        if value is not None:
            boundary = _set_under(value, statement) or micro_boundary(value, block, depth + 1)
        if boundary is None and (value is None or constant(value) is None):
            return None
        found += [boundary] if boundary is not None else []
    return found[0] if found else None


def _values(name: nodes.Name) -> Iterator[tuple[nodes.NodeNG | None, nodes.NodeNG]]:
    for binding in bindings(name):
        statement = binding.parent if isinstance(binding, nodes.AssignName) else None
        yield (statement.value, statement) if isinstance(statement, nodes.Assign) else (None, binding)


def _set_under(value: nodes.NodeNG, statement: nodes.NodeNG) -> Boundary | None:
    """``if (i + 1) % n == 0: update = True``."""
    parent = statement.parent
    if constant(value) is not True or not isinstance(parent, nodes.If) or statement not in parent.body:
        return None
    boundary = micro_boundary(parent.test, parent.body, _DEPTH)
    return boundary if boundary is not None and boundary.last else None


def _comparison(test: nodes.Compare, block: list[nodes.NodeNG]) -> Boundary | None:
    operator, right = test.ops[0]
    left = test.left
    if isinstance(right, nodes.BinOp) and right.op == "%":
        left, right = right, left
    if isinstance(left, nodes.BinOp) and left.op == "%":
        if operator == "==":
            return Boundary(True, left.right)
        return Boundary(False, left.right) if operator in ("!=", ">") and constant(right) == 0 else None
    if operator in ("==", ">=", "<", "!=") and _is_counted(left, block):
        return Boundary(operator in ("==", ">="), right)
    return None


def _is_counted(left: nodes.NodeNG, block: list[nodes.NodeNG]) -> bool:
    """A counter that the block resets, or the distance from a step that the block notes: ``step - last_update``."""
    if isinstance(left, (nodes.Name, nodes.Attribute)):
        return any(constant(one.value) == 0 for one in _assignments(block, left.as_string()))
    if isinstance(left, nodes.BinOp) and left.op == "-":
        return any(one.value.as_string() == left.left.as_string() for one in _assignments(block, left.right.as_string()))
    return False


def _assignments(block: list[nodes.NodeNG], target: str) -> Iterator[nodes.Assign]:
    for statement in block:
        for one in nodes_of(statement, nodes.Assign):
            if any(place.as_string() == target for place in one.targets):
                yield one


__all__ = ["Boundary", "micro_boundary", "repeats"]
