"""grad-scaler-with-bfloat16: scalers that scale for every precision, together with autocasts in bfloat16."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ldlm_lint.concepts.joined import Joined
from ldlm_lint.concepts.precision import Autocasts, Precision
from ldlm_lint.concepts.read_settings import ReadSettings
from ldlm_lint.edits.keywords import add_keyword
from ldlm_lint.edits.written_parts import written_argument
from ldlm_lint.model import (
    Applicability,
    Confidence,
    Consequence,
    Edit,
    Finding,
    Fix,
    Frequency,
    Probe,
    Reference,
    Related,
    Rule,
)
from ldlm_lint.wording import located

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode
    from ldlm_lint.program.handles import Argument, Call

RULE = Rule(
    code="R7802",
    symbol="grad-scaler-with-bfloat16",
    frequency=Frequency.STEP,
    consequence=Consequence.SLOW,
    message="%(where)s computes in bfloat16, which has the range of float32 and needs no loss scaling: this GradScaler "
    "only adds a check for infinities and a wait for the GPU to every step; pass `enabled=False`",
    summary="An enabled `GradScaler` together with an autocast whose dtype is bfloat16.",
    rationale="Loss scaling keeps small gradients from becoming zero in float16, whose smallest normal number is "
    "6e-5. bfloat16 has the exponent of float32 (smallest normal number 1.2e-38), so scaling gains nothing. An "
    "enabled scaler still multiplies the loss, divides all gradients, checks for infinities, and copies the result to "
    "the host in every step.",
    cost="One more pass over all gradients and one wait for the GPU per step. If clipping forgets `unscale_`, it also "
    "compares a scaled gradient norm.",
    exceptions="A script that chooses between float16 and bfloat16 and enables the scaler accordingly, as in "
    '`GradScaler(enabled=(dtype == "float16"))`: a disabled scaler does nothing, and a computed `enabled` is not '
    "reported.",
    versions="All versions of torch.",
    verification="`scaler.get_scale()` only ever grows: it doubles every 2000 steps because no infinity is ever found. "
    "A profile shows the scaler's kernels (`_amp_foreach_non_finite_check_and_unscale_`).",
    references=(
        Reference(
            "Automatic mixed precision: gradient scaling",
            "https://docs.pytorch.org/docs/stable/amp.html#gradient-scaling",
        ),
        Reference("torch.amp.grad_scaler", "https://github.com/pytorch/pytorch/blob/v2.4.0/torch/amp/grad_scaler.py"),
    ),
    reads=("py",),
    needs="torch.amp.autocast",
    triggers=(),
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: the loss is no longer multiplied and the gradients are no longer divided, which changes the "
    "last bits. A step that the scaler skipped because of an infinity is now taken. The scaler's state in a "
    "checkpoint becomes empty, and an enabled scaler raises when it loads an empty state.",
    probe=Probe(
        "grad-scale",
        "an enabled scaler scaled losses that autocast had computed in bfloat16",
        device_bound=True,
        experiment="precision",
    ),
    overrides="the demonstration shows that bfloat16 loses nothing without it",
)

_OLD = frozenset({"torch.cuda.amp.GradScaler", "torch.cuda.amp.grad_scaler.GradScaler"})
_SCALERS = _OLD | {"torch.amp.GradScaler", "torch.amp.grad_scaler.GradScaler", "torch.GradScaler"}
_REASON = "steps with an infinite gradient are no longer skipped, and the state of the scaler in checkpoints becomes empty"


def find(code: ProjectCode) -> Iterator[Finding]:
    """All scalers that scale for every precision."""
    for call in code.calls(_SCALERS):
        position = 4 if call.callee.interfaces & _OLD else 5
        enabled = call.argument("enabled", position)
        if (_always_scales(enabled) or _scales_with_autocasts(code, call, enabled)) and not code[Autocasts].choose(call):
            autocast = _in_bfloat16(code, call)
            if autocast is not None:
                is_configured = any(map(code[ReadSettings].names, autocast.argument("dtype", 1).values))
                yield _finding(code, call, autocast, None if is_configured else _fix(code, call, position))


def _always_scales(enabled: Argument) -> bool:
    return enabled.is_absent or (enabled.is_given and all(one.may_be().only is True for one in enabled.values))


def _scales_with_autocasts(code: ProjectCode, call: Call, enabled: Argument) -> bool:
    """Whether one setting switches a scaler and the autocasts in bfloat16 on: it scales whenever these compute in it."""
    switch = enabled.values[0].identity if len(enabled.values) == 1 else ()
    near = code[Autocasts].near(call) if switch else ()
    return any(precision is Precision.BFLOAT16 and switch in code[Autocasts].switches_of(one) for one, precision in near)


def _in_bfloat16(code: ProjectCode, call: Call) -> Call | None:
    """The autocast in bfloat16 that is closest to a scaler, of the trainings that it belongs to, if all autocasts there
    use bfloat16; a configuration that sets the dtype may choose float16, which needs the scaler."""
    path = code.path(call.module)
    seen = [found for one in sorted(code.trainings.around(path), key=lambda one: (one != path, one)) for found in code[Autocasts].of(one)]
    if any(precision is Precision.OTHER for _, precision in seen):
        return None
    found = [one for one, precision in seen if precision is Precision.BFLOAT16]
    return min(found, key=lambda one: code[Joined].path(call.function, one.function), default=None)


def _finding(code: ProjectCode, call: Call, autocast: Call, fix: Fix | None) -> Finding:
    where = f"the autocast at {located(code.path(autocast.module), autocast.line, code.path(call.module))}"
    span = autocast.span if autocast.module is call.module else autocast.spot.line_span
    confidence = RULE.confidence if call.is_as_written else Confidence.MEDIUM
    return code.finding(RULE, call.span, {"where": where}, [Related(span, "the forward pass computes in bfloat16")], fix=fix, confidence=confidence)


def _fix(code: ProjectCode, call: Call, position: int) -> Fix | None:
    """``enabled=False``, instead of a switch that the call writes out, if any."""
    written = written_argument(call, "enabled", position)
    if written is None:
        edit = add_keyword(code.source(call.module), call.span, "enabled", "False")
    else:
        edit = Edit(written.span, "False") if written.is_constant else None
    return Fix("set enabled=False", (edit,), Applicability.UNSAFE, _REASON) if edit else None
