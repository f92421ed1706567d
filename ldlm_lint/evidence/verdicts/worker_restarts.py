"""The cost of restarting the workers of a DataLoader in each later iteration over it."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ldlm_lint.evidence.amounts import duration
from ldlm_lint.evidence.model import Judgement, Measurement, Site, Verdict
from ldlm_lint.evidence.settling import QUIET, STEPS
from ldlm_lint.evidence.statistics import Quartiles, quartiles
from ldlm_lint.evidence.verdicts.by_place import by_site, counted, unit
from ldlm_lint.evidence.watched import WatchedRun, device_bound

RULE = "dataloader-without-persistent-workers"
CLAIM = "starting the workers again delays the first batch of each later iteration"
FEWEST_ITERATIONS = 5
FEWEST_WAITS = 5
# The share of an iteration's time that matters in practice, and the share that does not.
MATTERS, LITTLE = 0.05, 0.01


@dataclass(frozen=True, slots=True)
class _Cost:
    """The cost of restarts in the later iterations: at least and at most, as shares, and in seconds."""

    least: Quartiles
    most: Quartiles
    least_seconds: float
    most_seconds: float
    seconds: float
    first_waits: Quartiles
    # The third quartile of the other waits; None if too few were seen.
    steady: float | None


def judge(run: WatchedRun) -> Iterable[Judgement]:
    """Judge dataloader-without-persistent-workers by the place that creates a loader with workers."""
    for site, group in by_site(run.of("loaders")):
        records = [record for _, record in group if record["num_workers"]]
        if records:
            yield _judged(run, site, records)


def _judged(run: WatchedRun, site: Site, records: Sequence[Mapping[str, Any]]) -> Judgement:
    restarted = [one for one in records if one["worker_starts"] > 1 and not one["persistent_workers"]]
    shown = max(restarted or records, key=lambda one: one["iterators"])
    starts, passes = shown["worker_starts"], shown["iterators"]
    workers, iterations = counted(shown["num_workers"], "worker"), counted(passes, "iteration")
    settled_by = STEPS
    counts = Measurement("starts of the workers", float(starts), unit(starts, "start"), n=passes)
    if restarted:
        verdict, text, measured, settled_by = _of_cost(run, restarted)
        reason = f"{workers} started {starts} times for {iterations}; {text}"
        counts = measured or counts
    elif any(one["persistent_workers"] for one in records):
        verdict = Verdict.REFUTED if passes > 1 and starts == 1 else Verdict.INCONCLUSIVE
        reason = f"its workers are persistent: started {counted(starts, 'time')} for {iterations}"
    else:
        verdict, reason = Verdict.INCONCLUSIVE, "it was iterated once, so a restart of workers was not observed"
    scope = run.scope()
    made = Judgement(RULE, CLAIM, verdict, f"{reason} {scope.words}", scope, (site,), counts)
    if verdict is Verdict.INCONCLUSIVE:
        made = dataclasses.replace(made, settled_by=settled_by)
    # A faster device shortens the steps but not the start, so a small share on a CPU may be large there; a large share
    # stays large.
    return device_bound(run, made) if restarted and verdict is Verdict.REFUTED else made


def _of_cost(run: WatchedRun, records: Sequence[Mapping[str, Any]]) -> tuple[Verdict, str, Measurement | None, str]:
    """The verdict on loaders that restarted their workers, the figures as text and value, what would decide it."""
    if not all("passes" in one for one in records):
        return Verdict.INCONCLUSIVE, "the cost was not measured: the evidence is from an older probe", None, ""
    timed = [(one, [times for times in one["passes"][1:] if _is_example(times)]) for one in records]
    most = max(len(later) for _, later in timed)
    if most < FEWEST_ITERATIONS:
        few = f"only {counted(most, 'later iteration')} could be timed, {FEWEST_ITERATIONS} are needed"
        return Verdict.INCONCLUSIVE, few, None, STEPS
    # Ranks start their workers at the same time: a few iterations of many ranks are few.
    cost = _cost([(one, times) for one, later in timed if len(later) >= FEWEST_ITERATIONS for times in later])
    verdict = _weighed(cost)
    at_least = verdict is Verdict.VERIFIED
    share, seconds = (cost.least, cost.least_seconds) if at_least else (cost.most, cost.most_seconds)
    text = (
        f"that took {'at least' if at_least else 'at most'} {duration(seconds)} of each later iteration, "
        f"{100 * share.median:.1f} % of its {duration(cost.seconds)} (quartiles {100 * share.q1:.1f} and "
        f"{100 * share.q3:.1f} %, {counted(share.n, 'iteration')})"
    )
    if not at_least:
        text += f"; at least {100 * cost.least.median:.1f} %"
    detail = {"share_at_least": cost.least.median, "share_at_most": cost.most.median, "seconds": cost.seconds}
    metric = "at least: start of the workers" if at_least else "at most: start of the workers"
    measured = Measurement(metric, seconds, "s an iteration", n=share.n, clock="perf_counter", detail=detail)
    if run.busy:
        return Verdict.INCONCLUSIVE, f"{text}; {run.busy}", measured, QUIET
    return verdict, text, measured, ""


def _is_example(times: Mapping[str, Any]) -> bool:
    return times["first_wait"] is not None and bool(times["seconds"]) and not times["profiled"]


def _cost(later: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> _Cost:
    """The bounds of the time that persistent workers would have saved.

    They would save the start of the processes, but not the work for the first batch, which takes a worker's time for
    one batch. The rest of the first batch's time belongs to the start, too. The upper bound is the whole time up to the
    first batch, minus the usual wait for a batch.
    """
    least, most = [], []
    for record, times in later:
        usual = record["wait_seconds"].get("median", 0.0)
        least.append(times["process_seconds"] + _beyond_a_batch(record, times))
        most.append(max(times["iter_seconds"] + times["first_wait"] - usual, least[-1]))
    lengths = [times["seconds"] for _, times in later]
    steady = [one["wait_seconds"] for one, _ in later]
    return _Cost(
        quartiles([one / length for one, length in zip(least, lengths, strict=True)]),
        quartiles([one / length for one, length in zip(most, lengths, strict=True)]),
        statistics.median(least),
        statistics.median(most),
        statistics.median(lengths),
        quartiles([times["iter_seconds"] + times["first_wait"] for _, times in later]),
        max(one["q3"] for one in steady) if all(one["n"] >= FEWEST_WAITS for one in steady) else None,
    )


def _beyond_a_batch(record: Mapping[str, Any], times: Mapping[str, Any]) -> float:
    # Persistent workers begin an iterable dataset again as well: the time of its first batch applies to them, too.
    if times["batch_at_most"] is None or record.get("iterable"):
        return 0.0
    return max(0.0, times["first_wait"] - times["batch_at_most"])


def _weighed(cost: _Cost) -> Verdict:
    # Iterations of one or two batches have no steady waits: then their whole time is the time to the first batch.
    slower = cost.steady is None or cost.first_waits.q1 > cost.steady
    if slower and cost.least.q1 >= MATTERS:
        return Verdict.VERIFIED
    return Verdict.REFUTED if cost.most.q3 <= LITTLE else Verdict.INCONCLUSIVE
