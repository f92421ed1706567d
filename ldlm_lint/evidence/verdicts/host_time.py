"""The host waiting for the device, and the allocator's cache being emptied."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ldlm_lint.evidence.model import Evidence, Judgement, Measurement, Verdict
from ldlm_lint.evidence.verdicts.by_place import counted, listed
from ldlm_lint.evidence.verdicts.grouping import Place, judgement, on_accelerators, places
from ldlm_lint.evidence.watched import ACCELERATORS, WatchedRun

CALLS = {
    "synchronize": ("device-synchronized-in-training-loop", "synchronize() is called in every step: the host waits until the device has finished", "host-wait"),
    "empty_cache": (
        "cache-emptied-in-training-loop",
        "the allocator's cache is emptied in every step",
        "emptied-caches",
    ),
}
FEWEST_ITERATIONS = 5
FEWEST_OBSERVED = 2
EVERY, RARE = 0.9, 0.5


def judge(run: WatchedRun) -> Iterable[Judgement]:
    """The judgements about calls and reads in the training loop, by place."""
    for place in places(_made_by_the_program(_within(run, "host_calls"))):
        yield from _called(run, place)
    for place in places(_made_by_the_program(_within(run, "host_syncs"))):
        if not _only_indexes(run, place):
            yield from _read(run, place)


def _within(run: WatchedRun, topic: str) -> Iterable[tuple[Evidence, Mapping[str, Any]]]:
    """The records of a topic, each with the number of iterations that were observed."""
    for evidence, values in run.of(topic):
        for record in values["places"]:
            yield evidence, {**record, "of": values["iterations"], "mode": values.get("warned", False)}


def _made_by_the_program(
    found: Iterable[tuple[Evidence, Mapping[str, Any]]],
) -> Iterable[tuple[Evidence, Mapping[str, Any]]]:
    """The records of the program itself, without those of a Trainer, a loader or an optimizer."""
    return ((evidence, record) for evidence, record in found if record.get("caller", "program") == "program")


def _called(run: WatchedRun, place: Place) -> Iterable[Judgement]:
    rule, claim, metric = CALLS[place.records[0]["kind"]]
    iterations, of = place.total("iterations"), place.total("of")
    if not iterations:
        return
    share, call = iterations / of if of else 0.0, place.records[0]["call"]
    if place.most("of") < FEWEST_ITERATIONS:
        verdict = Verdict.INCONCLUSIVE
    elif share >= EVERY:
        verdict = Verdict.VERIFIED
    else:
        verdict = Verdict.REFUTED if share <= RARE else Verdict.INCONCLUSIVE
    reason = f"{call}() was called here in {iterations} of {counted(of, 'iteration')}"
    measured = Measurement(metric, share, "calls per iteration", n=of)
    yield on_accelerators(run, judgement(run, rule, claim, verdict, reason, (place.site,), measured))


def _only_indexes(run: WatchedRun, place: Place) -> bool:
    """Whether a run on the CPU used tensors as indices there and no more, as data sets do with random orders."""
    methods = {name for one in place.records for name in one["methods"]}
    return run.device not in ACCELERATORS and methods == {"__index__"} and not place.total("on_graph")


def _read(run: WatchedRun, place: Place) -> Iterable[Judgement]:
    rule, claim = "host-sync-in-training-loop", "the host waits for a value from the device in every step"
    of, warned, reads = place.total("of"), place.total("warned_iterations"), place.total("iterations")
    devices = {name for one in place.records for name in one["devices"]}
    methods = listed(dict.fromkeys(_call(name) for one in place.records for name in one["methods"]))
    enough = place.most("of") >= FEWEST_OBSERVED
    mode = all(one["mode"] for one in place.records)
    if run.device not in ACCELERATORS:
        verdict = Verdict.INCONCLUSIVE
        reason = (
            f"a tensor's value is read here by {methods} in {reads} of {counted(of, 'iteration')}, but a CPU has nothing to wait for,"
        )
    elif mode and enough and warned >= EVERY * of:
        verdict, reason = (
            Verdict.VERIFIED,
            f"torch reported a synchronizing operation here in {warned} of {counted(of, 'iteration')}",
        )
    elif mode and enough and not warned and devices == {"cpu"}:
        verdict, reason = Verdict.REFUTED, f"the values read here by {methods} were already on the CPU"
    else:
        verdict, reason = (
            Verdict.INCONCLUSIVE,
            f"{methods or 'an operation'} waited in {warned} of {counted(of, 'iteration')}",
        )
    measured = Measurement("host-wait", (warned or reads) / of if of else None, "reads per iteration", n=of)
    yield judgement(run, rule, claim, verdict, reason, (place.site,), measured)


def _call(method: str) -> str:
    """A method that copies a tensor's value to the host, as written in a program.

    >>> _call("item"), _call("__float__")
    ('.item()', 'float()')
    """
    return f"{method.strip('_')}()" if method.startswith("__") else f".{method}()"
