"""Edits for gradients of the wrong scale: unscaling before a clipping, dividing the loss by the micro-batches."""

from __future__ import annotations

from collections.abc import Sequence

from astroid import nodes

from ldlm_lint.autofix.lines import indentation
from ldlm_lint.checkers.accumulating import MicroBatches
from ldlm_lint.checkers.base import span_of
from ldlm_lint.checkers.gradient_sync_boundaries import micro_boundary
from ldlm_lint.checkers.scaled_loss import loss_of
from ldlm_lint.checkers.scaler_steps import ScaledClip
from ldlm_lint.checkers.step_events import Event, Kind
from ldlm_lint.model import Applicability, Edit, Fix
from ldlm_lint.python.places import function_of
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.source import Source

_ATOMS = (nodes.Name, nodes.Attribute, nodes.Const, nodes.Call, nodes.Subscript)


def unscale_fix(source: Source, found: ScaledClip, events: Sequence[Event]) -> Fix | None:
    """Insert ``scaler.unscale_(optimizer)`` in front of the first clipping; None if an unscaling would then be the
    second."""
    first, step = found.clips[0].site.statement(), found.step.node
    if found.step.site is not step or any(one.kind is Kind.UNSCALE and one.subject == found.step.subject for one in events):
        return None
    for clip, block in _blocks_around(first):
        holder = next((one for one in block if one is not clip and _holds(one, step)), None)
        if holder is None:
            continue
        text = f"{step.func.expr.as_string()}.unscale_({step.args[0].as_string()})"
        level = indentation(source.lines, clip.parent, clip)[1]
        lines = _guarded(source, holder, step, text, level)
        start = source.line_starts[(clip.lineno or 1) - 1]
        if lines is None or source.lines[(clip.lineno or 1) - 1][: clip.col_offset or 0].strip():
            return None
        indent = source.slice(source.span(start, span_of(source, clip).start))
        inserted = "".join(f"{indent}{line}{source.newline}" for line in lines)
        reason = "gradients that were cut to almost nothing get their real size"
        return Fix(f"call {text} before clipping", (Edit(source.span(start, start), inserted),), Applicability.UNSAFE, reason)
    return None


def _guarded(source: Source, holder: nodes.NodeNG, step: nodes.Call, text: str, level: str) -> list[str] | None:
    """The lines that unscale under the test that the scaler's step is under."""
    if holder is step.statement():
        return [text]
    if isinstance(holder, nodes.If) and step.statement() in holder.body:
        if micro_boundary(holder.test, holder.body) is not None:
            # Clipped with every micro-batch, stepped with the last: all but that one would still be clipped with their scale.
            return None
        test = source.slice(span_of(source, holder.test))
        return [f"if {test}:", f"{level}{text}"] if "\n" not in test and ":=" not in test else None
    return None


def _blocks_around(statement: nodes.NodeNG) -> list[tuple[nodes.NodeNG, list[nodes.NodeNG]]]:
    """A statement and those around it up to the function, each with its block."""
    found = []
    while not isinstance(statement, (nodes.FunctionDef, nodes.Module)):
        parent = statement.parent
        for name in ("body", "orelse", "finalbody"):
            block = getattr(parent, name, None)
            if isinstance(block, list) and statement in block:
                found.append((statement, block))
        statement = parent
    return found


def _holds(statement: nodes.NodeNG, node: nodes.NodeNG) -> bool:
    return any(statement is one for one in (node, *node.node_ancestors()))


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
