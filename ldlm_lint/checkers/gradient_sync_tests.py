"""The test of the last micro-batch in a form for the line before the forward pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from astroid import nodes

from ldlm_lint.checkers.base import span_of
from ldlm_lint.checkers.gradient_sync import SPLITS, Accumulation, local_function, own_calls
from ldlm_lint.python.names import bindings, last_name
from ldlm_lint.python.values import constant
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.source import Source

_REPEATABLE = (nodes.Name, nodes.Attribute, nodes.Const, nodes.BinOp, nodes.BoolOp, nodes.Compare, nodes.UnaryOp)


class EarlyTest(NamedTuple):
    """A test as text; ``last`` if it is true for the last micro-batch, ``loose`` if ``and`` binds closer."""

    text: str
    last: bool
    loose: bool = False


def early_test(source: Source, found: Accumulation, block: Sequence[nodes.NodeNG]) -> EarlyTest | None:
    """The test of the guard, or of the end of a loop over micro-batches; None if it is not known that early."""
    if found.boundary is None:
        text = _last_of_loop(source, found)
        return EarlyTest(text, True) if text is not None else None
    parts = list(nodes_of(found.boundary, nodes.NodeNG))
    if not all(isinstance(part, _REPEATABLE) or _is_length(part) or _is_entry(part) for part in parts):
        return None
    changes = list(_changes(found, block[0], parts))
    if any(not _is_counting(one, found.loop) for one in changes) or len(changes) > 1:
        return None
    text = _text(source, found.boundary, changes)
    loose = isinstance(found.boundary, nodes.BoolOp) and found.boundary.op == "or"
    return EarlyTest(text, found.last, loose) if "\n" not in text else None


def _changes(found: Accumulation, first: nodes.NodeNG, parts: Sequence[nodes.NodeNG]) -> Iterator[nodes.NodeNG]:
    """The changes to parts of the test between the new line and the guard."""
    names = {part.as_string() for part in parts if isinstance(part, (nodes.Name, nodes.Attribute))}
    fields = {part.attrname for part in parts if isinstance(part, nodes.Attribute)}
    start, end = first.lineno or 0, found.guard.lineno or 0
    for target in nodes_of(found.loop, (nodes.AssignName, nodes.AssignAttr, nodes.Delete)):
        if target.as_string() in names and start <= (target.lineno or 0) <= end:
            yield target
    for call in own_calls(found.loop):
        inner = local_function(call) if start <= (call.lineno or 0) < end else None
        if inner is not None:
            yield from (one for one in nodes_of(inner, nodes.AssignAttr) if one.attrname in fields)


def _is_counting(target: nodes.NodeNG, loop: nodes.NodeNG) -> bool:
    """``step += 1`` right in the loop's block, which happens in every micro-batch."""
    statement = target.parent
    if not isinstance(statement, nodes.AugAssign) or statement.op != "+=" or statement not in loop.body:
        return False
    return constant(statement.value) == 1 and not isinstance(statement.value, nodes.Name)


def _text(source: Source, test: nodes.NodeNG, counted: Sequence[nodes.NodeNG]) -> str:
    """The test with the pending increments added to the counter."""
    span = span_of(source, test)
    text, names = source.slice(span), {one.as_string() for one in counted}
    uses = [one for one in nodes_of(test, (nodes.Name, nodes.Attribute)) if one.as_string() in names]
    # From the right, so that the text before a use is still that of the file.
    for use in sorted(uses, key=lambda one: -span_of(source, one).start):
        place = span_of(source, use)
        start = len(source.slice(source.span(span.start, place.start)))
        added = f"{use.as_string()} + 1"
        closer = isinstance(use.parent, nodes.BinOp) and use.parent.op not in "+-"
        text = f"{text[:start]}{f'({added})' if closer else added}{text[start + len(use.as_string()) :]}"
    return text


def _last_of_loop(source: Source, found: Accumulation) -> str | None:
    """The test of the last iteration of a loop over a known number of micro-batches."""
    loop = found.loop
    if found.guard is not loop or not isinstance(loop, nodes.For):
        return None
    index, number = _of_range(source, loop) or _of_pieces(loop) or (None, None)
    if index is None or index.name == "_" or number is None:
        return None
    changed = {
        one.as_string() for statement in loop.body for one in nodes_of(statement, (nodes.AssignName, nodes.AssignAttr))
    }
    return None if changed & {index.name, number.text} else f"{index.name} == {number.written} - 1"


class _Number(NamedTuple):
    """The variable with the number of iterations, and the expression for their number."""

    text: str
    written: str


def _of_range(source: Source, loop: nodes.For) -> tuple[nodes.AssignName, _Number] | None:
    """``for i in range(n)``."""
    call = loop.iter
    if not isinstance(call, nodes.Call) or call.func.as_string() != "range" or len(call.args) != 1:
        return None
    count = call.args[0]
    known = isinstance(count, (nodes.Name, nodes.Attribute, nodes.Const)) or _is_entry(count)
    text = source.slice(span_of(source, count))
    if not known or not isinstance(loop.target, nodes.AssignName) or "\n" in text:
        return None
    return loop.target, _Number(text, text)


def _of_pieces(loop: nodes.For) -> tuple[nodes.AssignName, _Number] | None:
    """``for i, piece in enumerate(pieces)``, where ``pieces`` was split and has a length."""
    call, target = loop.iter, loop.target
    if not isinstance(call, nodes.Call) or call.func.as_string() != "enumerate" or len(call.args) != 1 or call.keywords:
        return None
    pieces = call.args[0]
    if (
        not isinstance(target, nodes.Tuple)
        or not isinstance(target.elts[0], nodes.AssignName)
        or not isinstance(pieces, nodes.Name)
    ):
        return None
    values = [
        getattr(one.parent, "value", None) if isinstance(one, nodes.AssignName) else None for one in bindings(pieces)
    ]
    if not values or not all(isinstance(one, nodes.Call) and last_name(one.func) in SPLITS for one in values):
        return None
    return target.elts[0], _Number(pieces.name, f"len({pieces.name})")


def _is_length(node: nodes.NodeNG) -> bool:
    return isinstance(node, nodes.Call) and isinstance(node.func, nodes.Name) and node.func.name == "len"


def _is_entry(node: nodes.NodeNG) -> bool:
    """``config["steps"]``: reading it twice is the same."""
    return (
        isinstance(node, nodes.Subscript)
        and isinstance(node.slice, nodes.Const)
        and isinstance(node.value, (nodes.Name, nodes.Attribute))
    )


__all__ = ["EarlyTest", "early_test"]
