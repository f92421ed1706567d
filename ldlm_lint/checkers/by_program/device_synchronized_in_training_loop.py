"""`device-synchronized-in-training-loop` in all code that a training step may reach."""

from __future__ import annotations

from collections.abc import Iterator

from ldlm_lint.checkers.by_program.stalls import finding, is_wanted, leading_calls
from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.concepts.measuring import Measuring
from ldlm_lint.model import Finding
from ldlm_lint.program.atoms import MASK
from ldlm_lint.rules.host_time import DEVICE_SYNCHRONIZED_IN_TRAINING_LOOP
from ldlm_lint.vocabulary.accelerators import SYNCHRONIZES

RULE = DEVICE_SYNCHRONIZED_IN_TRAINING_LOOP
WORDS: tuple[bytes, ...] = (b"synchronize",)


def find(view: View) -> Iterator[Finding]:
    """The calls that every step runs and that do not serve a measurement."""
    for call, _ in view.ask.calls_of(SYNCHRONIZES):
        leading = leading_calls(view, call)
        if leading is None or any(is_wanted(view, one) for one in (call, *leading)):
            continue
        if not _measures(view, call, bool(leading)) and not any(_measures(view, one, True) for one in leading):
            yield from finding(view, RULE, call, leading)


def _measures(view: View, call: int, in_helper: bool) -> bool:
    """Whether a call serves a measurement: between clock reads, next to events, or around a context manager's body."""
    module = view.program.module_of(call)
    scope = module.table.sites[call & MASK].scope
    if module.scopes[scope].yields or module.scopes[scope].name in ("__enter__", "__exit__"):
        return True
    if view[Measuring].is_measured(module, call & MASK):
        return True
    return in_helper and any(view[Measuring].reads_clock(module, one) for one in module.scopes[scope].calls)
