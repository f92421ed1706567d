"""grad-scaler-with-bfloat16 where the scaler, its switch or the precision come from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator

from ldlm_lint.autofix.calls import add_keyword
from ldlm_lint.checkers.amp import SCALER_REASON
from ldlm_lint.checkers.autocasts import OLD_SCALERS, SCALERS
from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.concepts.precision import is_chosen_by_precision
from ldlm_lint.model import Applicability, Claim, Finding, Fix
from ldlm_lint.program.atoms import TRUE
from ldlm_lint.program.queries import State
from ldlm_lint.rules.amp import GRAD_SCALER_WITH_BFLOAT16

RULE = GRAD_SCALER_WITH_BFLOAT16
WORDS = (b"GradScaler",)


def find(view: View) -> Iterator[Finding]:
    """All scalers that scale whatever the precision is."""
    for call, name in view.ask.calls_of(SCALERS):
        if _always_scales(view, call, 4 if name in OLD_SCALERS else 5) and not is_chosen_by_precision(view.program, call):
            claims = (Claim("autocasts-need-no-scaling"),)
            yield view.finding(RULE, view.call_span(call), {"where": ""}, claims=claims, fix=_fix(view, call))


def _always_scales(view: View, call: int, position: int) -> bool:
    enabled = view.ask.argument(call, "enabled", position)
    if enabled.state is State.ABSENT:
        return True
    complete = all(view.program.ask(one) == frozenset([TRUE]) and view.ask.is_complete(one) for one in enabled.sources)
    return enabled.state is State.GIVEN and complete


def _fix(view: View, call: int) -> Fix | None:
    edit = add_keyword(view.source(view.program.module_of(call)), view.call_span(call), "enabled", "False")
    return Fix("set enabled=False", (edit,), Applicability.UNSAFE, SCALER_REASON) if edit else None
