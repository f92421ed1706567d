"""Schedules of the learning rate: before the optimizer, or for each micro-batch."""

from __future__ import annotations

from collections.abc import Iterable

from ldlm_lint.evidence.model import Judgement, Measurement, Verdict
from ldlm_lint.evidence.verdicts.by_place import counted
from ldlm_lint.evidence.verdicts.grouping import Place, judgement, places
from ldlm_lint.evidence.watched import WatchedRun


def judge(run: WatchedRun) -> Iterable[Judgement]:
    """The judgements about each place that calls ``step()`` of a scheduler whose optimizer was seen to step."""
    every = [place for place in places(run.of("schedules")) if min(one["optimizer_steps"] for one in place.records)]
    for place in every:
        yield from _order(run, place, wound=_restored(run) or _steps_elsewhere(place, every))
        yield from _micro_batches(run, place)


def _restored(run: WatchedRun) -> bool:
    """Whether an optimizer got the state of an earlier run."""
    return any(load["entries"] for _, one in run.of("optimizers") for load in one.get("loads", ()))


def _steps_elsewhere(place: Place, every: Iterable[Place]) -> bool:
    """Whether a scheduler of this place steps after its optimizer at another place: this one wound it forward."""
    made = [str(one.get("made")) for one in place.records]
    others = (one for other in every if other is not place for one in other.records)
    return any(one["after_step"] and str(one.get("made")) in made for one in others)


def _order(run: WatchedRun, place: Place, wound: bool) -> Iterable[Judgement]:
    """``wound`` says that a place called only before the first step may resume an earlier run."""
    early, later, alone = (
        place.most("before_first_step"),
        place.total("after_step"),
        place.total("after_backward_alone"),
    )
    name = place.records[0]["class"]
    if early and not alone and (early > 1 or (wound and not later)):
        verdict = Verdict.INCONCLUSIVE
        reason = f"{name}.step() was called {counted(early, 'time')} before the first step, as when a run is resumed,"
    elif early == 1 and (alone <= len(place.records) or not later):
        verdict, reason = Verdict.VERIFIED, f"{name}.step() was called here before the first step of its optimizer"
    elif not early and later:
        verdict, reason = Verdict.REFUTED, f"{name}.step() was first called here after its optimizer had stepped"
    else:
        return
    claim = "the scheduler steps before its optimizer"
    yield judgement(run, "scheduler-before-optimizer", claim, verdict, reason, (place.site,))


def _micro_batches(run: WatchedRun, place: Place) -> Iterable[Judgement]:
    passes, alone, later = (
        place.most("most_backwards_per_step"),
        place.total("after_backward_alone"),
        place.total("after_step"),
    )
    if passes < 2:
        return
    name, calls = place.records[0]["class"], place.total("calls")
    steps = sum(int(one["optimizer_steps"]) for one in place.records)
    ratio = Measurement("scheduler-steps-per-optimizer-step", calls / steps, n=steps)
    if alone >= 2:
        verdict = Verdict.VERIFIED
        reason = f"{name}.step() was called {calls} times for {counted(steps, 'optimizer step')}, {alone} times after a backward pass without an optimizer step,"
    elif later >= 2 and not alone:
        verdict, reason = (
            Verdict.REFUTED,
            f"{name}.step() was called once for each optimizer step of {passes} backward passes",
        )
    else:
        return
    claim = "the scheduler steps for every micro-batch"
    yield judgement(run, "scheduler-per-micro-batch", claim, verdict, reason, (place.site,), ratio)
