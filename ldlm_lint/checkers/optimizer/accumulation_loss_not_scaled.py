"""accumulation-loss-not-scaled: losses of micro-batches that nothing divides by their number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ldlm_lint.concepts.accumulation import Accumulation, Accumulations
from ldlm_lint.concepts.losses import BackwardPasses
from ldlm_lint.concepts.micro_losses import MicroLosses
from ldlm_lint.concepts.optimizer_steps import OptimizerSteps
from ldlm_lint.edits.written_parts import written_argument
from ldlm_lint.model import (
    Applicability,
    Confidence,
    Consequence,
    Edit,
    Finding,
    Fix,
    Frequency,
    Reference,
    Related,
    Rule,
    Span,
)
from ldlm_lint.program.handles import Call
from ldlm_lint.wording import quoted

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode

RULE = Rule(
    code="W7308",
    symbol="accumulation-loss-not-scaled",
    frequency=Frequency.STEP,
    consequence=Consequence.WRONG_RESULT,
    message="the gradients of %(count)s micro-batches are summed, but nothing divides the loss: they are %(count)s times "
    "as large as those of one batch; divide the loss by %(count)s before the backward pass",
    summary="Gradient accumulation whose loss is not divided by the number of micro-batches.",
    rationale="`backward()` adds to the gradients. After n micro-batches they are the sum of n means, which is n "
    "times the gradient of the whole batch, so changing the number of micro-batches changes the size of the steps.",
    cost="Gradients larger by the number of micro-batches: 4 of them gave 4 times the gradient of the same batch at "
    "once (measured on CPU). Plain SGD takes steps larger by that factor. Adam and AdamW divide by the size of the "
    "gradients and hardly change; clipping, coupled weight decay and eps do.",
    exceptions="A loss that is summed over tokens and divided by their number elsewhere; accelerate, Lightning's "
    "automatic optimization and DeepSpeed, which divide the loss themselves (dividing again is a bug there); a limit "
    "and a learning rate that were tuned to the sum.",
    versions="All versions of torch.",
    verification="Compare the norm of the gradients before the step for one batch at once and for the same batch in micro-batches.",
    references=(
        Reference("Automatic mixed precision examples", "https://docs.pytorch.org/docs/stable/notes/amp_examples.html"),
        Reference("transformers: fixing gradient accumulation", "https://huggingface.co/blog/gradient_accumulation"),
    ),
    reads=("py",),
    triggers=(),
    confidence=Confidence.MEDIUM,
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: gradients become smaller by that factor, which changes plain SGD, clipping and weight decay. "
    "A learning rate tuned to the sum is then too small.",
)

_ATOMS = frozenset({"param", "free", "attr", "const", "call", "item"})
_REASON = "gradients become smaller by that factor, which changes the steps of plain SGD and the effect of clipping"


def find(code: ProjectCode) -> Iterator[Finding]:
    """All accumulations whose losses, of backward passes with and without a scaler, nothing divides."""
    seen: set[Call] = set()
    for first in code[Accumulations].every:
        passes = [one for one in code[Accumulations].passes_of(first) if one.is_counted and not code[BackwardPasses].is_of_engine(one.backward)]
        found = [one for one in passes if one.backward not in seen and not code[MicroLosses].are_divided(one)]
        seen.update(one.backward for one in found)
        if found:
            yield _finding(code, found)


def _finding(code: ProjectCode, group: Sequence[Accumulation]) -> Finding:
    one, *others = group
    related = [Related(_span(code[OptimizerSteps].found_by(one.steps[0]), one.backward), "the optimizer steps here")]
    related += [Related(_span(other.backward, one.backward), "this loss is not divided either") for other in others]
    args = {"count": quoted(one.count.called_in(one.call.function))}
    return code.finding(RULE, one.backward.span, args, related, fix=_fix(code, group), confidence=Confidence.MEDIUM)


def _span(call: Call, other: Call) -> Span:
    return call.span if call.module is other.module else call.line_span


def _fix(code: ProjectCode, group: Sequence[Accumulation]) -> Fix | None:
    """Divide each loss where it runs backward; none if the number has no name there."""
    edits = [_division(code, one) for one in group]
    known = sorted(edit for edit in edits if edit is not None)
    title = f"divide the loss by {group[0].count.called_in(group[0].call.function)}"
    return Fix(title, tuple(known), Applicability.UNSAFE, _REASON) if len(known) == len(edits) else None


def _division(code: ProjectCode, one: Accumulation) -> Edit | None:
    number = one.count.called_in(one.call.function)
    if one.call != one.backward or not all(part.isidentifier() or part.isdecimal() for part in number.split(".")):
        return None
    divisor = f"({number} or 1)" if _may_be_off(one) else number
    source, backward = code.source(one.backward.module), one.backward
    receiver = backward.receiver.unnamed if backward.receiver is not None else None
    is_scaled = isinstance(receiver, Call) and receiver.called_name == "scale" and receiver.place == backward.place
    holder = receiver if isinstance(receiver, Call) and is_scaled else backward
    if written := written_argument(holder, "loss", 0):
        loss = written.text if written.is_name or written.row[0] in _ATOMS else f"({written.text})"
        return Edit(written.span, f"{loss} / {divisor}") if "\n" not in loss else None
    loss = source.slice(backward.callee_span).rpartition(".")[0].rstrip()
    start = backward.span.start
    is_plain = loss and "\n" not in loss and source.data[start - 1 : start] != b"("
    return Edit(source.span(start, start + len(loss.encode(source.encoding))), f"({loss} / {divisor})") if is_plain else None


def _may_be_off(one: Accumulation) -> bool:
    """``if not n or step % n == 0``: without accumulation the number is None or 0."""
    tests = [test for test in one.due.condition.unnamed.within if test.kind != "copy"] if one.due is not None else []
    return sum(operand.is_alike(one.count) for test in tests for operand in test.operands) > 1
