"""Saves that somebody has to ask for: an interval that is tested before it is divided by."""

from __future__ import annotations

from collections.abc import Iterator

from astroid import nodes

from ldlm_lint.checkers.checkpoint_counters import bound_values
from ldlm_lint.python.places import function_of
from ldlm_lint.python.values import constant
from ldlm_lint.python.walks import nodes_of

_ABOVE = frozenset({(">", 0), ("!=", 0), (">", -1), ("!=", -1), (">=", 1), ("is not", None)})


def interval_asked_for(save: nodes.Call) -> str:
    """The setting that a save waits for, as ``save_every`` in ``if save_every and step % save_every == 0:``; empty without one."""
    function = function_of(save)
    child: nodes.NodeNG = save
    for parent in save.node_ancestors():
        if parent is function:
            return ""
        if isinstance(parent, nodes.If) and child in parent.body:
            for interval in _asked_for(parent.test):
                return _setting(interval)
        child = parent
    return ""


def _asked_for(test: nodes.NodeNG) -> Iterator[nodes.NodeNG]:
    """The intervals that a condition tests by themselves, too."""
    parts = list(_conjuncts(test))
    tested = {text for one in parts if (text := _tested(one))}
    for part in parts:
        for remainder in nodes_of(part, nodes.BinOp):
            if remainder.op == "%" and remainder.right.as_string() in tested:
                yield remainder.right


def _conjuncts(test: nodes.NodeNG) -> Iterator[nodes.NodeNG]:
    if isinstance(test, nodes.BoolOp) and test.op == "and":
        for value in test.values:
            yield from _conjuncts(value)
    else:
        yield test


def _tested(part: nodes.NodeNG) -> str:
    """``every``, ``every > 0``, ``every is not None``."""
    if isinstance(part, (nodes.Name, nodes.Attribute, nodes.Subscript)):
        return part.as_string()
    if isinstance(part, nodes.Compare) and len(part.ops) == 1 and isinstance(part.ops[0][1], (nodes.Const, nodes.UnaryOp)):
        operator, right = part.ops[0]
        return part.left.as_string() if (operator, constant(right)) in _ABOVE else ""
    return ""


def _setting(interval: nodes.NodeNG) -> str:
    """The name that an interval has outside: an attribute, a key, or a variable that holds nothing else."""
    if isinstance(interval, nodes.Name):
        values = list(bound_values(interval))
        return _setting(values[0]) if len(values) == 1 and not isinstance(values[0], nodes.Name) else interval.name if not values else ""
    if isinstance(interval, nodes.Attribute):
        return interval.attrname
    key = constant(interval.slice) if isinstance(interval, nodes.Subscript) else None
    return key if isinstance(key, str) else ""


__all__ = ["interval_asked_for"]
