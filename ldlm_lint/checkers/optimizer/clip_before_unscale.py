"""clip-before-unscale: clippings of gradients that are still multiplied by the scale of the loss."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ldlm_lint.concepts.gradient_scalers import GradientScalers, ScaledClip
from ldlm_lint.concepts.intervals import Intervals
from ldlm_lint.edits.blocks import put_before
from ldlm_lint.edits.written_parts import written_argument
from ldlm_lint.model import (
    Applicability,
    Confidence,
    Consequence,
    Finding,
    Fix,
    Frequency,
    Probe,
    Reference,
    Related,
    Rule,
)
from ldlm_lint.wording import quoted

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode
    from ldlm_lint.program.handles import Call

RULE = Rule(
    code="E7305",
    symbol="clip-before-unscale",
    frequency=Frequency.STEP,
    consequence=Consequence.WRONG_RESULT,
    message="`%(function)s` clips gradients that are still multiplied by the loss scale, so the limit cuts them far too "
    "much: call %(call)s before it",
    summary="Gradient clipping between `scaler.scale(loss).backward()` and `scaler.step(optimizer)` without `scaler.unscale_`.",
    rationale="A `GradScaler` multiplies the loss by a scale, 65536 at first. All gradients are multiplied with it "
    "until `scaler.step` divides them. A limit that is compared with scaled gradients cuts almost every step to "
    "almost nothing, and by another factor whenever the scale changes.",
    cost="With a limit of 1.0 and a scale of 65536 the gradients that reached the optimizer had a norm of 1.5e-5 "
    "(measured on CPU). SGD then hardly moves. Adam divides by the size of the gradients, so only its eps and the "
    "limit lose their meaning.",
    exceptions="Not reported: a scaler with `enabled=False`, bfloat16, clipping by accelerate, Lightning or a wrapper "
    "of the project that unscales itself, and a branch that trains without the scaler.",
    versions="torch 2.0 to 2.13.",
    verification="Print the norm that `clip_grad_norm_` returns: it is thousands of times that of training in float32, and changes with "
    "`scaler.get_scale()`. The scale can be followed on a CPU with `torch.amp.GradScaler('cpu')`.",
    references=(
        Reference("Automatic mixed precision examples", "https://docs.pytorch.org/docs/stable/notes/amp_examples.html"),
        Reference("torch.amp.GradScaler", "https://docs.pytorch.org/docs/stable/amp.html"),
    ),
    reads=("py",),
    triggers=(),
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: gradients that were cut to almost nothing get their real size, so a learning rate tuned to "
    "them can be too large. Calling `unscale_` twice for one optimizer before its step raises a RuntimeError.",
    probe=Probe("clipped-norms", "gradients were still scaled when they were clipped"),
)

_REASON = "gradients that were cut to almost nothing get their real size"


def find(code: ProjectCode) -> Iterator[Finding]:
    """All clippings that come before the step of a scaler without `unscale_` between."""
    for one in code[GradientScalers].scaled_clips():
        first, *others = one.clips
        step = one.step.span if one.step.module is first.module else one.step.line_span
        related = [Related(step, "the gradients are unscaled here"), *(Related(other.span, "this clips scaled gradients too") for other in others)]
        args = {"function": first.called_name, "call": quoted(_unscaling(code, one.step))}
        confidence = Confidence.HIGH if one.is_known else Confidence.MEDIUM
        yield code.finding(RULE, first.span, args, related, fix=_fix(code, one), confidence=confidence)


def _unscaling(code: ProjectCode, step: Call) -> str:
    """The step as it is written, with the other method."""
    scaler = code.source(step.module).slice(step.callee_span).rpartition(".")[0].rstrip()
    optimizer = written_argument(step, "optimizer", 0)
    return f"{scaler}.unscale_({optimizer.text if optimizer is not None else ''})"


def _fix(code: ProjectCode, one: ScaledClip) -> Fix | None:
    """`unscale_` in front of the first clipping, unless it is called behind it: a second call raises an error.

    Of gradients that are clipped with every micro-batch it would unscale those of the last one only.
    """
    first = one.clips[0]
    micro = [guard for guard in one.step.guards if guard not in first.guards and code[Intervals].at(guard, first.function) is not None]
    if one.site != one.step or micro or code[GradientScalers].unscales_in(first.function, one.step):
        return None
    text = _unscaling(code, one.step)
    edit = put_before(code.source(first.module), first.line, one.step.line, text)
    return Fix(f"call {text} before clipping", (edit,), Applicability.UNSAFE, _REASON) if edit is not None else None
