"""grad-scaler-with-bfloat16: scalers that scale for every precision, together with autocasts in bfloat16."""

from __future__ import annotations

from collections.abc import Iterator

from ldlm_lint.autofix.calls import add_keyword
from ldlm_lint.checkers.by_program.calls import confidence_of, line_span
from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.checkers.by_program.written import written_argument
from ldlm_lint.code.table import line_of
from ldlm_lint.concepts.joined import Joined
from ldlm_lint.concepts.precision import OLD_SCALERS, SCALERS, Autocasts, Precision, is_chosen_by_precision
from ldlm_lint.concepts.read_settings import ReadSettings
from ldlm_lint.model import Applicability, Edit, Finding, Fix, Related
from ldlm_lint.program.atoms import MASK, TRUE
from ldlm_lint.program.handles import expression
from ldlm_lint.program.identity import identity_of
from ldlm_lint.program.queries import Argument, State
from ldlm_lint.rules.amp import GRAD_SCALER_WITH_BFLOAT16
from ldlm_lint.wording import located

RULE = GRAD_SCALER_WITH_BFLOAT16
WORDS = (b"GradScaler",)
_REASON = "steps with an infinite gradient are no longer skipped, and the state of the scaler in checkpoints becomes empty"


def find(view: View) -> Iterator[Finding]:
    """All scalers that scale for every precision."""
    for call, name in view.ask.calls_of(SCALERS):
        position = 4 if name in OLD_SCALERS else 5
        enabled = view.ask.argument(call, "enabled", position)
        scales = _always_scales(view, enabled) or _scales_with_autocasts(view, call, enabled)
        if scales and not is_chosen_by_precision(view.program, call):
            shown = _in_bfloat16(view, call)
            if shown is not None:
                yield _finding(view, call, shown, None if _is_configured(view, shown) else _fix(view, call, position))


def _always_scales(view: View, enabled: Argument) -> bool:
    if enabled.state is State.ABSENT:
        return True
    complete = all(view.program.ask(one) == frozenset([TRUE]) and view.ask.is_complete(one) for one in enabled.sources)
    return enabled.state is State.GIVEN and complete


def _scales_with_autocasts(view: View, call: int, enabled: Argument) -> bool:
    """Whether one setting switches a scaler and the autocasts in bfloat16 on: it scales whenever these compute in it."""
    switch = identity_of(view.program, enabled.sources[0]) if len(enabled.sources) == 1 else ()
    if not switch:
        return False
    near = view.program.together.programs_of(view.program.module_of(call))
    seen = [found for index in near for found in view[Autocasts].of(index)]
    return any(precision is Precision.BFLOAT16 and switch in view[Autocasts].switches_of(one) for one, precision in seen)


def _in_bfloat16(view: View, call: int) -> int | None:
    """The autocast (its call) in bfloat16 that is closest to a scaler, of the trainings that it belongs to, if all
    autocasts there use bfloat16."""
    project, path = view.context.project, view.path(view.program.module_of(call))
    found: list[int] = []
    for one in sorted(project.trainings_of(path), key=lambda one: (one != path, one)):
        module = view.module(one)
        for autocast, precision in view[Autocasts].of(module.index) if module is not None else ():
            if precision is Precision.OTHER:
                return None
            found += [autocast] if precision is Precision.BFLOAT16 else []
    own = view.program.function_of(call)
    return min(found, key=lambda autocast: view[Joined].path(own, view.program.function_of(autocast)), default=None)


def _is_configured(view: View, autocast: int) -> bool:
    """Whether a configuration file sets the dtype of an autocast: another file may choose float16, which needs the
    scaler."""
    return any(view[ReadSettings].names(expression(view, one)) for one in view.ask.argument(autocast, "dtype", 1).sources)


def _finding(view: View, call: int, autocast: int, fix: Fix | None) -> Finding:
    own, module = view.program.module_of(call), view.program.module_of(autocast)
    line = line_of(module.table.sites[autocast & MASK].place)
    where = f"the autocast at {located(view.path(module), line, view.path(own))}"
    span = view.call_span(autocast) if module is own else line_span(view, autocast)
    return view.finding(RULE, view.call_span(call), {"where": where}, [Related(span, "the forward pass computes in bfloat16")], fix=fix, confidence=confidence_of(view, RULE, call))


def _fix(view: View, call: int, position: int) -> Fix | None:
    """``enabled=False``, instead of a switch that the call writes out, if any."""
    written = written_argument(view, call, "enabled", position)
    if written is None:
        edit = add_keyword(view.source(view.program.module_of(call)), view.call_span(call), "enabled", "False")
    else:
        edit = Edit(written.span, "False") if written.is_constant else None
    return Fix("set enabled=False", (edit,), Applicability.UNSAFE, _REASON) if edit else None
