"""`device-synchronized-in-training-loop` in helpers of files that train nothing themselves."""

from __future__ import annotations

from collections.abc import Iterator

from ldlm_lint.checkers.by_program.host_sync_in_training_loop import step_of
from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.checkers.host_time import NEEDED
from ldlm_lint.checkers.host_time_known import SYNCHRONIZES
from ldlm_lint.code.table import line_of
from ldlm_lint.model import Confidence, Finding, Related
from ldlm_lint.program.atoms import MASK
from ldlm_lint.project.questions.host_time import trains_on_device
from ldlm_lint.rules.host_time import DEVICE_SYNCHRONIZED_IN_TRAINING_LOOP, RUNS_IN_EVERY_STEP
from ldlm_lint.rules.roles import remark_at
from ldlm_lint.wording import quoted

RULE = DEVICE_SYNCHRONIZED_IN_TRAINING_LOOP
WORDS: tuple[bytes, ...] = (b"synchronize",)
_MOST = 40
"""Calls that lead to a helper that are looked at."""


def find(view: View) -> Iterator[Finding]:
    """The calls in helpers that a step of another file runs each time, and that measure nothing."""
    for call, name in view.ask.calls_of(SYNCHRONIZES):
        leading = _leading(view, call)
        if leading and not any(_is_meant(view, one) for one in (call, *leading)):
            yield from _finding(view, call, name)


def _leading(view: View, call: int) -> list[int]:
    """The calls by which a step of another file reaches the helper around a call, each of them in every step; empty where one does not."""
    training, program = view.training, view.program
    found: list[int] = []
    function = program.function_of(call)
    while function not in training.steps:
        loops = training.reached.get(function)
        via = training.reached_by.get(function)
        if loops is None or via is None or via in found or len(found) > _MOST:
            return []
        found.append(via)
        function = program.function_of(via)
    own = program.module_of(call)
    if not found or program.module_of(function) is own:
        return []
    inside = [(call, program.function_of(call)), *((one, program.function_of(one)) for one in found)]
    runs = (training.runs(program.module_of(one), one & MASK, at, training.reached.get(at, frozenset())) for one, at in inside)
    return found if all(runs) else []


def _is_meant(view: View, call: int) -> bool:
    """Whether a call stands where something is measured: between clocks, beside events, or around what a context manager encloses."""
    module = view.program.module_of(call)
    scope = module.table.sites[call & MASK].scope
    if module.scopes[scope].yields or module.scopes[scope].name in ("__enter__", "__exit__"):
        return True
    if view.measuring.is_measured(module, call & MASK):
        return True
    span = view.call_span(call)
    reads = any(view.measuring.reads_clock(module, one) for one in module.scopes[scope].calls)
    return reads or NEEDED.search(remark_at(view.source(module), span.start, span.end)) is not None


def _finding(view: View, call: int, name: str) -> Iterator[Finding]:
    module, place = step_of(view, view.program.function_of(call))
    own = view.program.module_of(call)
    if not trains_on_device(view.context, view.path(module)):
        return
    where = view.context.each_step(view.path(module), line_of(place), view.path(own))
    related = Related(view.context.line_span(view.path(module), line_of(place)), RUNS_IN_EVERY_STEP)
    args = {"call": quoted(f"{name}()"), "where": where}
    yield view.finding(RULE, view.call_span(call), args, (related,), confidence=Confidence.MEDIUM)
