"""grad-scaler-with-bfloat16 where the scaler, its switch or the precision come from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator

from ldlm_lint.autofix.calls import add_keyword
from ldlm_lint.checkers.amp import SCALER_REASON
from ldlm_lint.checkers.autocasts import OLD_SCALERS, SCALERS, Precision
from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.concepts.precision import is_chosen_by_precision
from ldlm_lint.model import Applicability, Claim, Finding, Fix
from ldlm_lint.program.atoms import TRUE
from ldlm_lint.program.origins import origin_of
from ldlm_lint.program.queries import Argument, State
from ldlm_lint.rules.amp import GRAD_SCALER_WITH_BFLOAT16

RULE = GRAD_SCALER_WITH_BFLOAT16
WORDS = (b"GradScaler",)


def find(view: View) -> Iterator[Finding]:
    """All scalers that scale whatever the precision is."""
    for call, name in view.ask.calls_of(SCALERS):
        enabled = view.ask.argument(call, "enabled", 4 if name in OLD_SCALERS else 5)
        scales = _always_scales(view, enabled) or _scales_with_autocasts(view, call, enabled)
        if scales and not is_chosen_by_precision(view.program, call):
            claims = (Claim("autocasts-need-no-scaling"),)
            yield view.finding(RULE, view.call_span(call), {"where": ""}, claims=claims, fix=_fix(view, call))


def _always_scales(view: View, enabled: Argument) -> bool:
    if enabled.state is State.ABSENT:
        return True
    complete = all(view.program.ask(one) == frozenset([TRUE]) and view.ask.is_complete(one) for one in enabled.sources)
    return enabled.state is State.GIVEN and complete


def _scales_with_autocasts(view: View, call: int, enabled: Argument) -> bool:
    """Whether one setting switches a scaler and the autocasts in bfloat16 on: it scales whenever these compute in it."""
    switch = origin_of(view.program, enabled.sources[0]) if len(enabled.sources) == 1 else ()
    if not switch:
        return False
    near = view.program.together.programs_of(view.program.module_of(call))
    seen = [found for index in near for found in view.autocasts.of(index)]
    return any(precision is Precision.BFLOAT16 and switch in view.autocasts.switches_of(one) for one, precision in seen)


def _fix(view: View, call: int) -> Fix | None:
    if view.ask.argument(call, "enabled").state is not State.ABSENT:
        return None
    edit = add_keyword(view.source(view.program.module_of(call)), view.call_span(call), "enabled", "False")
    return Fix("set enabled=False", (edit,), Applicability.UNSAFE, SCALER_REASON) if edit else None
