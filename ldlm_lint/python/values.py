"""The values of an expression, as far as the file's own text decides them.

astroid's inference is unsound for this purpose: it answers ``0`` for ``CFG["workers"]`` although the key was
assigned ``8`` below, and for ``n = 0; if flag: n = 4`` (both tried). So constants are evaluated here, over all
bindings of a name, and anything else is unknown.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from astroid import nodes

from ldlm_lint.python.built_texts import Part, parts_of
from ldlm_lint.python.names import bindings, qualified, scope_of
from ldlm_lint.untrusted_numbers import is_printable
from ldlm_lint.vocabulary.durations import SECONDS, UNITS

_DEPTH = 8
_MOST_VALUES = 1000
_MOST_TEXTS = 16
_LONGEST_TEXT = 2000
_ARITHMETIC: dict[str, Callable[[object, object], object]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
}
_CASTS: dict[str, Callable[[Any], object]] = {"int": int, "float": float, "bool": bool, "str": str}
# timedelta itself accepts at most 999,999,999 days, and no NaN or infinity.
_MOST = 1e15


def evaluate(node: nodes.NodeNG, depth: int = 0) -> tuple[object, ...] | None:
    """Every possible constant of an expression, or None if unknown.

    A name counts with all the values that its scope ever binds to it, in any order.
    """
    if depth > _DEPTH:
        return None
    if isinstance(node, nodes.Const):
        return (node.value,) if is_printable(node.value) else None
    if isinstance(node, nodes.Name):
        return _of_name(node, depth)
    if isinstance(node, nodes.UnaryOp):
        return _each(evaluate(node.operand, depth + 1), {"-": operator.neg, "not": operator.not_}.get(node.op))
    if isinstance(node, nodes.BinOp):
        return _joined(parts_of(node), depth) if node.op == "%" else _arithmetic(node, depth)
    if isinstance(node, nodes.IfExp):
        return _union(evaluate(one, depth + 1) for one in (node.body, node.orelse))
    if isinstance(node, nodes.Call) and (cast := _cast_of(node)) is not None:
        return _each(evaluate(node.args[0], depth + 1), cast)
    return _joined(parts_of(node), depth) if isinstance(node, (nodes.JoinedStr, nodes.Call)) else None


def _joined(parts: Sequence[Part] | None, depth: int) -> tuple[object, ...] | None:
    """Every text that parts make one after the other; None if one of them is unknown, or they are too many."""
    texts = [""]
    for part in parts or ():
        values = (part.text,) if part.node is None else evaluate(part.node, depth + 1)
        if not values or not all(isinstance(one, str) or (part.field and type(one) is int) for one in values):
            return None
        added = dict.fromkeys(str(one) for one in values)
        if len(texts) * len(added) > _MOST_TEXTS:
            return None
        texts = [text + one for text in texts for one in added]
        if len(texts[-1]) > _LONGEST_TEXT:
            return None
    return tuple(texts) if parts is not None else None


def _cast_of(call: nodes.Call) -> Callable[[object], object] | None:
    """The builtin conversion in a call with one argument; None if the name is bound to something else."""
    if not isinstance(call.func, nodes.Name) or len(call.args) != 1 or call.keywords or scope_of(call.func) is not None:
        return None
    return _CASTS.get(call.func.name)


def constant(node: nodes.NodeNG | None) -> object | None:
    """The only possible constant of an expression, else None (also for a literal None)."""
    if isinstance(node, nodes.Const):
        return node.value if is_printable(node.value) else None
    values = evaluate(node) if node is not None else None
    return values[0] if values is not None and len({(type(value), value) for value in values}) == 1 else None


def seconds(
    node: nodes.NodeNG, amount_of: Callable[[nodes.NodeNG], object | None] | None = None
) -> tuple[float, ...] | None:
    """The lengths, in seconds, that a ``datetime.timedelta`` expression may have; None if it is not one or unknown.

    ``amount_of`` evaluates the numbers in it, `constant` by default.
    """
    call = timedelta_call(node)
    if call is None:
        return None
    total = 0.0
    parts = [*zip(UNITS, call.args, strict=False), *((keyword.arg, keyword.value) for keyword in call.keywords)]
    for unit, value in parts:
        amount = (amount_of or constant)(value)
        if unit not in SECONDS or isinstance(amount, bool) or not isinstance(amount, (int, float)):
            return None
        if not abs(amount) < _MOST:
            return None
        total += SECONDS[unit] * amount
    return (total,)


def timedelta_call(node: nodes.NodeNG | None) -> nodes.Call | None:
    """The ``timedelta(...)`` call in an expression, or in the only binding of a name."""
    if isinstance(node, nodes.Name):
        value = only_binding(node)
        return timedelta_call(value) if isinstance(value, nodes.Call) else None
    if isinstance(node, nodes.Call) and qualified(node.func) == {"datetime.timedelta"}:
        return node
    return None


def only_binding(node: nodes.Name) -> nodes.NodeNG | None:
    """The value of a name that its scope binds exactly once, by a plain assignment; None otherwise."""
    values = _bound_values(node)
    return values[0] if values is not None and len(values) == 1 else None


def _of_name(node: nodes.Name, depth: int) -> tuple[object, ...] | None:
    values = _bound_values(node)
    return _union(evaluate(value, depth + 1) for value in values) if values else _joined(parts_of(node), depth)


def _bound_values(node: nodes.Name) -> list[nodes.NodeNG] | None:
    """The right-hand sides of all bindings of a name in the scope it belongs to; None if any is not an assignment, or they are too many."""
    values: list[nodes.NodeNG] = []
    found = bindings(node)
    for binding in found if len(found) <= _MOST_VALUES else ():
        statement = binding.parent if isinstance(binding, nodes.AssignName) else None
        if not isinstance(statement, (nodes.Assign, nodes.AnnAssign)) or statement.value is None:
            return None
        values.append(statement.value)
    return values or None


def _arithmetic(node: nodes.BinOp, depth: int) -> tuple[object, ...] | None:
    left, right = evaluate(node.left, depth + 1), evaluate(node.right, depth + 1)
    function = _ARITHMETIC.get(node.op)
    if function is None or left is None or right is None or len(left) != 1 or len(right) != 1:
        return None
    if node.op == "+" and isinstance(left[0], str) and isinstance(right[0], str):
        return (left[0] + right[0],) if len(left[0]) + len(right[0]) < _LONGEST_TEXT else None
    if not all(isinstance(side[0], (int, float)) for side in (left, right)):
        return None
    try:
        result = function(left[0], right[0])
    except (ArithmeticError, TypeError):
        return None
    return (result,) if is_printable(result) else None


def _each(values: tuple[object, ...] | None, function: Callable[[Any], object] | None) -> tuple[object, ...] | None:
    if values is None or function is None:
        return None
    try:
        return tuple(function(value) for value in values)
    except (TypeError, ValueError, OverflowError):
        return None


def _union(parts: Iterable[tuple[object, ...] | None]) -> tuple[object, ...] | None:
    """The values of all parts; evaluation stops after an unknown part, or if there are too many values."""
    values: list[object] = []
    for part in parts:
        if part is None or len(values) > _MOST_VALUES:
            return None
        values += part
    return tuple(values)
