"""Edits that divide the loss by the number of micro-batches."""

from __future__ import annotations

from collections.abc import Sequence

from astroid import nodes

from ldlm_lint.checkers.accumulating import MicroBatches
from ldlm_lint.checkers.base import span_of
from ldlm_lint.checkers.scaled_loss import loss_of
from ldlm_lint.model import Applicability, Edit, Fix
from ldlm_lint.python.places import function_of
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.source import Source

_ATOMS = (nodes.Name, nodes.Attribute, nodes.Const, nodes.Call, nodes.Subscript)


def divide_fix(source: Source, group: Sequence[MicroBatches]) -> Fix | None:
    """Divide each loss right where it runs backward; None if the number has no name there."""
    edits = tuple(_division(source, micro) for micro in group)
    known = tuple(edit for edit in edits if edit is not None)
    if len(known) != len(edits):
        return None
    number = source.slice(span_of(source, group[0].count))
    reason = "gradients become smaller by that factor, which changes the steps of plain SGD and the effect of clipping"
    return Fix(f"divide the loss by {number}", tuple(sorted(known)), Applicability.UNSAFE, reason)


def _division(source: Source, micro: MicroBatches) -> Edit | None:
    count, loss = micro.count, loss_of(micro.backward.node)
    if not isinstance(count, _ATOMS[:3]) or function_of(count) is not function_of(loss):
        return None
    span = span_of(source, loss)
    text, number = source.slice(span), source.slice(span_of(source, count))
    if "\n" in text:
        return None
    if not isinstance(loss, _ATOMS):
        text = f"({text})"
    text = f"{text} / ({number} or 1)" if _may_be_off(micro) else f"{text} / {number}"
    if loss is not micro.backward.node.func.expr:
        return Edit(span, text)
    return Edit(span, f"({text})") if source.data[span.start - 1 : span.start] != b"(" else None


def _may_be_off(micro: MicroBatches) -> bool:
    """``if not n or step % n == 0``: without accumulation the number is None or 0."""
    test = micro.guard.test if micro.guard is not None else None
    texts = [one.as_string() for one in nodes_of(test, (nodes.Name, nodes.Attribute))] if test is not None else []
    return texts.count(micro.count.as_string()) > 1
