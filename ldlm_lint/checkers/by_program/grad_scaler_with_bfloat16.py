"""grad-scaler-with-bfloat16 where the scaler, its switch or the precision come from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator

from ldlm_lint.autofix.calls import add_keyword
from ldlm_lint.checkers.amp import SCALER_REASON
from ldlm_lint.checkers.autocasts import CHOOSES_PRECISION, OLD_SCALERS, SCALERS
from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.checkers.by_program.ways import words_below
from ldlm_lint.model import Applicability, Claim, Finding, Fix
from ldlm_lint.program.atoms import MASK, TRUE
from ldlm_lint.program.calls import UNKNOWN
from ldlm_lint.program.modules import Module
from ldlm_lint.program.queries import State
from ldlm_lint.rules.amp import GRAD_SCALER_WITH_BFLOAT16

RULE = GRAD_SCALER_WITH_BFLOAT16
WORDS = (b"GradScaler",)
_CALLERS = 16
"""Functions through which a scaler is asked for that are looked at."""


def find(view: View) -> Iterator[Finding]:
    """All scalers that scale whatever the precision is."""
    for call, name in view.ask.calls_of(SCALERS):
        if _always_scales(view, call, 4 if name in OLD_SCALERS else 5) and not _is_chosen_by_precision(view, call):
            claims = (Claim("autocasts-need-no-scaling"),)
            yield view.finding(RULE, view.call_span(call), {"where": ""}, claims=claims, fix=_fix(view, call))


def _always_scales(view: View, call: int, position: int) -> bool:
    enabled = view.ask.argument(call, "enabled", position)
    if enabled.state is State.ABSENT:
        return True
    complete = all(view.program.ask(one) == frozenset([TRUE]) and view.ask.is_complete(one) for one in enabled.sources)
    return enabled.state is State.GIVEN and complete


def _is_chosen_by_precision(view: View, call: int) -> bool:
    """Whether a condition around a call, or around the calls of its function, speaks of the precision or of scaling."""
    program = view.program
    todo = [call]
    seen: set[int] = set()
    while todo and len(seen) < _CALLERS:
        at = todo.pop()
        seen.add(at)
        module = program.module_of(at)
        site = module.table.sites[at & MASK]
        if _speaks_of_precision(module, site.guard):
            return True
        function = module.base | site.scope
        program.ask(("callers", function))
        edges = program.ask(("edges", function)) if site.scope else ()
        todo += [edge >> 2 for edge in edges if edge & 3 != UNKNOWN and edge >> 2 not in seen]
    return False


def _speaks_of_precision(module: Module, guard: int) -> bool:
    while guard >= 0:
        row = module.table.guards[guard]
        if row.kind in ("if", "rest", "case") and any(CHOOSES_PRECISION.search(word) for word in words_below(module, row.test)):
            return True
        guard = row.parent
    return False


def _fix(view: View, call: int) -> Fix | None:
    edit = add_keyword(view.source(view.program.module_of(call)), view.call_span(call), "enabled", "False")
    return Fix("set enabled=False", (edit,), Applicability.UNSAFE, SCALER_REASON) if edit else None
