"""clamped-loss: calls that bound a loss from above before it is run backward."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from ldlm_lint.concepts.evaluation import Evaluation
from ldlm_lint.concepts.losses import Losses
from ldlm_lint.concepts.untrained import Untrained
from ldlm_lint.edits.keywords import remove_arguments
from ldlm_lint.edits.lines import delete_line
from ldlm_lint.edits.written_parts import Part, parts_of, written_argument
from ldlm_lint.model import Applicability, Consequence, Edit, Finding, Fix, Frequency, Reference, Rule
from ldlm_lint.patterns import lazily
from ldlm_lint.program.handles import Call, Expr
from ldlm_lint.wording import quoted

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode

RULE = Rule(
    code="W7810",
    symbol="clamped-loss",
    frequency=Frequency.STEP,
    consequence=Consequence.WRONG_RESULT,
    message="%(loss)s has no gradient above %(bound)s: the clamp stops training when the loss is large, and hides an "
    "infinite loss; clip the gradient norm instead",
    summary="A loss that is clamped from above before its backward pass.",
    rationale="The gradient of `clamp(loss, max=M)` is that of the loss up to M, and zero above: the batches with the "
    "largest errors train nothing. An infinite loss becomes M with gradient zero, so a later check for infinity never "
    "fires. A NaN stays NaN, and its gradient is zero too. The clamp does not limit gradients: just below M they are "
    "unchanged. Clip their norm instead, or skip the step on all ranks together.",
    cost="Saturated steps update nothing (or only through weight decay and momentum) and still take their full time. "
    "How often that happens depends on M and the data.",
    exceptions="A robust loss on purpose, such as truncating a known share of outliers per element. A bound that the "
    "loss cannot reach is dead code. A lower bound alone (free bits, a hinge) is not reported.",
    versions="All versions of torch.",
    verification="Log the loss before the clamp, and the share of steps above M; or look for `grad_norm == 0` in "
    "these steps.",
    references=(
        Reference("torch.clamp", "https://docs.pytorch.org/docs/stable/generated/torch.clamp.html"),
        Reference(
            "torch.nn.utils.clip_grad_norm_",
            "https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.clip_grad_norm_.html",
        ),
    ),
    reads=("py",),
    triggers=(b"clamp", b"clip(", b"clip_(", b"minimum(", b"min("),
    applicability=Applicability.DISPLAY,
    fix_safety="Shown only: without the bound large losses train with their full gradient, so its norm must be "
    "clipped.",
)

_CLAMPS = {"clamp": 1, "clamp_": 1, "clip": 1, "clip_": 1, "clamp_max": 0, "clamp_max_": 0}
"""Methods with the place of the upper bound among the arguments; a function of torch has the tensor before these."""
_FUNCTIONS = {f"torch.{name}": place + 1 for name, place in _CLAMPS.items()}
_LESSER = frozenset({"torch.min", "torch.minimum"})
_CONSTANTS = frozenset(f"torch.{name}" for name in ("tensor", "as_tensor", "full", "full_like", "ones_like"))
_LIMITS = lazily(r"max|cap|limit|clip|clamp|ceil|upper|bound|thresh", re.I)
_ENDLESS = frozenset({"inf", "finfo"})


class _Bounded(NamedTuple):
    """A call that gives the lesser of two values, with the one that it bounds, and both as the call writes them."""

    call: Call
    value: Expr
    bound: Expr
    text: str
    written: Part | None


def find(code: ProjectCode) -> Iterator[Finding]:
    """The calls that bound a loss which is run backward."""
    losses = code[Losses]
    for one in (*_clamped(code), *_lesser(code)):
        if not losses.is_loss(one.value) or _is_endless(one.bound) or not _trains(code, one.call):
            continue
        changed = [one.call, *([one.value] if one.call.called_name.endswith("_") else [])]
        if any(map(losses.may_run_backward, changed)):
            args = {"loss": quoted(one.text), "bound": quoted(one.written.text if one.written is not None else one.bound.text)}
            yield code.finding(RULE, one.call.span, args, fix=_fix(code, one), confidence=RULE.confidence)


def _clamped(code: ProjectCode) -> Iterator[_Bounded]:
    """``torch.clamp(loss, max=10)``, ``loss.clamp(max=10)``."""
    functions = {call: next(_FUNCTIONS[name] for name in call.callee.interfaces if name in _FUNCTIONS) for call in code.calls(_FUNCTIONS)}
    for call, place in functions.items():
        written = written_argument(call, "input", 0)
        for value in call.argument("input", 0).values[:1]:
            for bound in call.argument("max", place).values[:1]:
                yield _Bounded(call, value, bound, written.text if written is not None else value.text, written_argument(call, "max", place))
    for call in code.calls_named(*_CLAMPS):
        if call.receiver is not None and call not in functions and not call.targets and not call.callee.outside_names:
            text = call.callee.text.rpartition(".")[0].rstrip()
            for bound in call.argument("max", _CLAMPS[call.called_name]).values[:1]:
                yield _Bounded(call, call.receiver, bound, text, written_argument(call, "max", _CLAMPS[call.called_name]))


def _lesser(code: ProjectCode) -> Iterator[_Bounded]:
    """``min(loss, 10.0)`` and ``torch.minimum(loss, torch.tensor(10.0))``, in either order."""
    of_python = (call for call in code.calls_named("min") if call.callee.plain.kind == "free" and not call.targets)
    for call in (*code.calls(_LESSER), *of_python):
        parts = parts_of(call)
        if len(call.arguments) == len(call.positional) == len(parts) == 2:
            (value, text), (bound, written) = zip(call.positional, parts, strict=True)
            if _is_limit(code, bound):
                yield _Bounded(call, value, bound, text.text, written)
            elif _is_limit(code, value):
                yield _Bounded(call, bound, value, written.text, text)


def _is_limit(code: ProjectCode, value: Expr) -> bool:
    """Whether a value is a constant, or is called a limit."""
    constant = value.may_be().only
    is_number = isinstance(constant, (int, float)) and not isinstance(constant, bool)
    is_tensor = isinstance(value, Call) and (bool(value.callee.outside_names & _CONSTANTS) or value.called_name in ("new_tensor", "new_full"))
    named = any(map(_LIMITS.search, {*value.names, value.name}))
    return (is_number or is_tensor or named) and not code[Losses].is_loss(value)


def _is_endless(bound: Expr) -> bool:
    """None, infinity, or the largest number of a type: only an overflow is cut off."""
    constant = bound.may_be().only
    is_infinite = constant is None or (isinstance(constant, float) and math.isinf(constant))
    return is_infinite or any(one.name in _ENDLESS or one.constant in _ENDLESS for one in bound.within)


def _trains(code: ProjectCode, call: Call) -> bool:
    """Whether gradients are recorded at a call, in a file of a training."""
    records = not code[Untrained].records_nothing(call) and not code[Evaluation].is_named_so(call.function)
    return records and code.trainings.belong_to(code.path(call.module))


def _fix(code: ProjectCode, one: _Bounded) -> Fix:
    """Leave the upper bound out and limit the gradients instead; with edits if the call has no other effect."""
    title = "remove the bound, and clip the gradients with clip_grad_norm_() before the step"
    why = "large losses then train with their full gradient, which clipping of the gradient norm limits"
    return Fix(title, _without_bound(code, one) if one.written is not None and not one.call.is_dropped else (), Applicability.DISPLAY, why)


def _without_bound(code: ProjectCode, one: _Bounded) -> tuple[Edit, ...]:
    source, parts = code.source(one.call.module), parts_of(one.call)
    others = [part for part in parts if part.text != one.text and part != one.written and part.text != "None"]
    if others:
        is_removable = one.written is not None and (bool(one.written.name) or parts[-1] == one.written)
        return (remove_arguments(source, [one.written.whole]) or ()) if is_removable and one.written is not None else ()
    lines, at = source.lines, one.call.line - 1
    if lines[at].strip() == f"{one.text} = {one.call.text}":
        # Only ``loss = loss`` would remain, and a block without a statement would be none.
        is_first = lines[at - 1].rstrip().endswith(":")
        after = next((line for line in lines[at + 1 :] if line.strip()), "")
        is_last = len(after) - len(after.lstrip()) < len(lines[at]) - len(lines[at].lstrip())
        return () if is_first and is_last else (delete_line(source, one.call.span),)
    return (Edit(one.call.span, one.text),)
