"""`host-sync-in-training-loop` in all code that a training step may reach, by the devices of values."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.checkers.by_program.wait_exceptions import WaitExceptions, spot_of
from ldlm_lint.checkers.by_program.wait_texts import WaitTexts
from ldlm_lint.code.table import line_of
from ldlm_lint.concepts.every_step import EveryStep
from ldlm_lint.concepts.waits import Wait, Waits
from ldlm_lint.model import Confidence, Finding, Related
from ldlm_lint.program.modules import Module
from ldlm_lint.program.spots import Spot
from ldlm_lint.project.accelerators import only_differentiates, trains_on_device
from ldlm_lint.rules.host_time import FOR_ALL, HOST_SYNC_IN_TRAINING_LOOP, RUNS_IN_EVERY_STEP
from ldlm_lint.wording import quoted

RULE = HOST_SYNC_IN_TRAINING_LOOP
WORDS: tuple[bytes, ...] = (b"torch", b"loss", b"backward", b"tensor", b".item", b".cpu")


def find(view: View) -> Iterator[Finding]:
    """All waits of all steps, those on one line together."""
    groups: dict[tuple[int, int], list[Wait]] = {}
    for wait in view[Waits].all():
        groups.setdefault((wait.module.index, line_of(wait.place)), []).append(wait)
    texts = WaitTexts(view)
    exceptions = WaitExceptions(view, texts)
    for every in groups.values():
        waits = [wait for wait in every if view[EveryStep].chain(spot_of(view, wait)) is not None]
        if not waits:
            continue
        module, _ = step_of(view, spot_of(view, waits[0]))
        path = view.path(module)
        if trains_on_device(view.context, path) and not only_differentiates(view.context.project, path):
            left = (wait for wait in waits if not exceptions.hold(wait, view.span(wait.module, wait.place, wait.end)))
            yield from (_finding(view, wait, texts) for wait in itertools.islice(left, 1))


def _finding(view: View, wait: Wait, texts: WaitTexts) -> Finding:
    span = view.span(wait.module, wait.place, wait.end)
    source = view.source(wait.module)
    module, place = step_of(view, spot_of(view, wait))
    where = view.context.each_step(view.path(module), line_of(place), view.path(wait.module))
    related = Related(view.context.line_span(view.path(module), line_of(place)), RUNS_IN_EVERY_STEP)
    args = {"what": _what(wait, source.slice(span)), "where": where, "wait": FOR_ALL, "advice": texts.advice(wait)}
    chain = view[EveryStep].chain(spot_of(view, wait))
    is_assumed = chain is not None and view[EveryStep].is_assumed(chain.step)
    confidence = Confidence.LOW if is_assumed else Confidence.MEDIUM
    return view.finding(RULE, span, args, (related,), fix=texts.fix(wait), confidence=confidence)


def step_of(view: View, spot: Spot) -> tuple[Module, int]:
    """Where the step begins in which code surely runs."""
    found = view[EveryStep].step_around(spot) or spot.function.spot
    return found.function.module, found.place


def _what(wait: Wait, text: str) -> str:
    if wait.what in ("test", "truth"):
        return f"the condition {quoted(text)}"
    if wait.what == "format":
        return f"formatting {quoted(text)}"
    return quoted(text)
