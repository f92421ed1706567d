"""How long the training waits for a DataLoader, and whether workers or a longer queue would change that."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ldlm_lint.evidence.model import Evidence, Judgement, Measurement, Site, Verdict
from ldlm_lint.evidence.settling import QUIET, STEPS
from ldlm_lint.evidence.verdicts.by_place import by_site, counted
from ldlm_lint.evidence.watched import WatchedRun, device_bound

IN_MAIN_PROCESS, PREFETCH = "dataloader-in-main-process", "dataloader-without-prefetch"
_CLAIMS = {
    IN_MAIN_PROCESS: "the training waits for this loader, which has no workers",
    PREFETCH: "single batches come late, and the queue of 2 batches for each worker runs empty",
}
_FEWEST_WAITS = 5
_FEWEST_LATE = 3
_WAITS = 0.10
_NO_WAIT = 0.02
# The share of the waits in which the device is idle, corresponding to the steps above the first quartile.
_STARVED = 0.75
_DEFAULT_PREFETCH = 2

Group = Sequence[tuple[Evidence, Any]]


def judge(run: WatchedRun) -> Iterable[Judgement]:
    """Judge dataloader-in-main-process and dataloader-without-prefetch by the place that creates a loader."""
    for site, group in by_site(run.of("loaders")):
        yield from _in_main_process(run, site, group)
        yield from _prefetch(run, site, group)


def _in_main_process(run: WatchedRun, site: Site, group: Group) -> Iterator[Judgement]:
    workers = {record["num_workers"] for _, record in group}
    if 0 not in workers:
        reason = f"this loader has {counted(max(workers), 'worker')} {run.scope().words}"
        yield Judgement(IN_MAIN_PROCESS, _CLAIMS[IN_MAIN_PROCESS], Verdict.REFUTED, reason, run.scope(), (site,))
    elif workers == {0}:
        yield from _waits(run, site, group, IN_MAIN_PROCESS)


def _prefetch(run: WatchedRun, site: Site, group: Group) -> Iterator[Judgement]:
    if not all(record["num_workers"] for _, record in group):
        return
    factors = {record["prefetch_factor"] for _, record in group}
    if _DEFAULT_PREFETCH not in factors:
        reason = f"its prefetch_factor is {max(one or 0 for one in factors)} {run.scope().words}"
        yield Judgement(PREFETCH, _CLAIMS[PREFETCH], Verdict.REFUTED, reason, run.scope(), (site,))
    else:
        yield from _waits(run, site, group, PREFETCH)


def _waits(run: WatchedRun, site: Site, group: Group, rule: str) -> Iterator[Judgement]:
    """The share of the steady iterations that waits for the loader; it depends on the device that computes
    meanwhile.
    """
    scope, claim = run.scope(), _CLAIMS[rule]
    known = [record for _, record in group if record["wait_share"]["n"] >= _FEWEST_WAITS]
    if not known:
        most = max(record["wait_share"]["n"] for _, record in group)
        if any(record["batches"] > record["evaluation_batches"] for _, record in group):
            reason = f"only {counted(most, 'steady iteration')} of a training with this loader seen {scope.words}"
            made = Judgement(rule, claim, Verdict.INCONCLUSIVE, reason, scope, (site,))
            yield dataclasses.replace(made, settled_by=STEPS)
        return
    worst = max(known, key=lambda record: (_cost(record) or 0.0, record["wait_share"]["median"]))
    share = worst["wait_share"]
    figure = Measurement(
        "share of a step spent waiting for the loader", share["median"], "", n=share["n"], clock="perf_counter"
    )
    reason = (
        f"an iteration waits for the loader {100 * share['median']:.0f} % of its time in the median "
        f"(quartiles {100 * share['q1']:.0f} and {100 * share['q3']:.0f} %, {share['n']} iterations)"
    )
    verdict, remark, settled_by = _weighed(run, rule, worst, group)
    made = Judgement(rule, claim, verdict, f"{reason}{remark} {scope.words}", scope, (site,), figure)
    yield device_bound(run, dataclasses.replace(made, settled_by=settled_by))


def _cost(record: Any) -> float | None:
    """The share of the total time spent waiting; if the device could be queried, only while it was idle."""
    totals = record.get("waits_in_all")
    if not totals or not totals["seconds"]:
        return None
    waited: float = totals["starved"] if record["device_asked"] else totals["waited"]
    return waited / float(totals["seconds"])


def _weighed(run: WatchedRun, rule: str, record: Any, group: Group) -> tuple[Verdict, str, str]:
    """The verdict, a text for the quartiles, and what would decide it."""
    share, cost = record["wait_share"], _cost(record)
    asked = sum(one["device_asked"] for _, one in group)
    starved = sum(one["device_starved"] for _, one in group)
    if run.busy:
        return Verdict.INCONCLUSIVE, f"; {run.busy}", QUIET
    if asked and not starved:
        return Verdict.REFUTED, f"; the device was still computing at the end of all {asked} waits", ""
    remark = f"; the device was idle in {starved} of {asked} waits" if asked else ""
    if rule == PREFETCH:
        late = _late(record, cost, remark)
        if late is not None:
            return late
    elif share["q1"] >= _WAITS:
        # A host that runs ahead may wait while the device still computes: then the wait costs nothing.
        return (Verdict.VERIFIED if starved >= _STARVED * asked else Verdict.INCONCLUSIVE), remark, ""
    # The quartiles hide a few long waits, which the sum does not.
    if share["q3"] <= _NO_WAIT and (cost is None or cost <= _NO_WAIT):
        return Verdict.REFUTED, "", ""
    return Verdict.INCONCLUSIVE, remark, ""


def _late(record: Any, cost: float | None, remark: str) -> tuple[Verdict, str, str] | None:
    """The verdict on the queue from relevant waits; None if they are too short.

    A longer queue evens out single late batches, and does nothing if the workers are slower than the training. Slower
    workers cause at least one wait per ``num_workers`` batches: waits count as single if they are fewer than half of
    that. While the training waits for a late batch, a worker is busy with it: in total that may take half of the time
    that the workers have while the training computes.
    """
    share = record["wait_share"]
    if cost is None or cost < _WAITS:
        slow = cost is None and share["q1"] >= _WAITS
        return (Verdict.INCONCLUSIVE, f"{remark}; late single batches were not recorded", "") if slow else None
    workers, totals = record["num_workers"], record["waits_in_all"]
    late, most = totals["late"], share["n"] / (2 * workers)
    computes = totals["seconds"] - totals["waited"]
    said = f"; {late} of {share['n']} iterations wait, {100 * cost:.0f} % of the time{remark}"
    if late > most or totals["waited"] > workers * computes / 2:
        return Verdict.INCONCLUSIVE, f"{said}: the workers may be too slow, and a longer queue does not change that", ""
    if late < _FEWEST_LATE:
        return Verdict.INCONCLUSIVE, said, STEPS
    return Verdict.VERIFIED, said, ""
