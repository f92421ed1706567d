"""What DataLoaders were told, what the training waited for, and how data was shuffled."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ldlm_lint.evidence.model import Evidence, Judgement, Measurement, Site, Verdict
from ldlm_lint.evidence.settling import QUIET, STEPS
from ldlm_lint.evidence.verdicts.by_place import by_site, counted, distinct, unit
from ldlm_lint.evidence.watched import ACCELERATORS, WatchedRun, device_bound

_FEWEST_WAITS = 5
_WAITS = 0.10
_NO_WAIT = 0.02
# The share of the waits in which the device has nothing to do, as that of the steps that the first quartile leaves.
_STARVED = 0.75
_DEFAULT_PREFETCH = 2
_WAITED = "the training waits for this loader, which has no workers"
_RUNS_DRY = "the training waits for this loader, whose workers prefetch 2 batches each"
_TOO_MANY = "the ranks of a node start more DataLoader workers than it has CPUs"
_SAME_ORDER = "every epoch has the data in the same order: set_epoch() is not called"
_PAGEABLE = "batches are copied to the device from pageable memory"

Group = Sequence[tuple[Evidence, Any]]


def judge(run: WatchedRun) -> Iterable[Judgement]:
    """Judge the rules about loaders by the place that makes them, and about samplers."""
    for site, group in by_site(run.of("loaders")):
        yield from _in_main_process(run, site, group)
        yield from _prefetch(run, site, group)
        yield from _too_many(run, site, group)
        yield from _pinned(run, site, group)
    for site, group in by_site(run.of("samplers")):
        yield from _shuffled(run, site, group)


def _in_main_process(run: WatchedRun, site: Site, group: Group) -> Iterator[Judgement]:
    rule = "dataloader-in-main-process"
    workers = {record["num_workers"] for _, record in group}
    if 0 not in workers:
        reason = f"this loader has {counted(max(workers), 'worker')} {run.scope().words}"
        yield Judgement(rule, _WAITED, Verdict.REFUTED, reason, run.scope(), (site,))
    elif workers == {0}:
        yield from _waits(run, site, group, rule, _WAITED)


def _prefetch(run: WatchedRun, site: Site, group: Group) -> Iterator[Judgement]:
    rule = "dataloader-without-prefetch"
    if not all(record["num_workers"] for _, record in group):
        return
    factors = {record["prefetch_factor"] for _, record in group}
    if _DEFAULT_PREFETCH not in factors:
        reason = f"its prefetch_factor is {max(one or 0 for one in factors)} {run.scope().words}"
        yield Judgement(rule, _RUNS_DRY, Verdict.REFUTED, reason, run.scope(), (site,))
    else:
        yield from _waits(run, site, group, rule, _RUNS_DRY)


def _waits(run: WatchedRun, site: Site, group: Group, rule: str, claim: str) -> Iterator[Judgement]:
    """The share of the steady iterations that waits for the loader; it is bound to the device that computes meanwhile."""
    shares = [record["wait_share"] for _, record in group if record["wait_share"]["n"] >= _FEWEST_WAITS]
    if not shares:
        most = max(record["wait_share"]["n"] for _, record in group)
        if any(record["batches"] > record["evaluation_batches"] for _, record in group):
            reason = f"only {counted(most, 'steady iteration')} of a training with this loader seen {run.scope().words}"
            made = Judgement(rule, claim, Verdict.INCONCLUSIVE, reason, run.scope(), (site,))
            yield dataclasses.replace(made, settled_by=STEPS)
        return
    worst = max(shares, key=lambda one: one["median"])
    figure = Measurement(
        "share of a step that waits for the loader", worst["median"], "", n=worst["n"], clock="perf_counter"
    )
    reason = (
        f"{100 * worst['median']:.0f} % of an iteration waits for the loader "
        f"(quartiles {100 * worst['q1']:.0f} and {100 * worst['q3']:.0f} %, {worst['n']} iterations)"
    )
    verdict, remark = _share_verdict(run, worst, group)
    judgement = Judgement(rule, claim, verdict, f"{reason}{remark} {run.scope().words}", run.scope(), (site,), figure)
    if run.busy and verdict is Verdict.INCONCLUSIVE:
        judgement = dataclasses.replace(judgement, settled_by=QUIET)
    yield device_bound(run, judgement)


def _share_verdict(run: WatchedRun, share: Any, group: Group) -> tuple[Verdict, str]:
    if run.busy:
        return Verdict.INCONCLUSIVE, f"; {run.busy}"
    asked = sum(record["device_asked"] for _, record in group)
    starved = sum(record["device_starved"] for _, record in group)
    if asked and not starved:
        return Verdict.REFUTED, f"; the device was still computing at the end of all {asked} waits"
    if share["q1"] >= _WAITS:
        # A host that runs ahead may wait while the device still computes: then the wait costs nothing.
        verdict = Verdict.VERIFIED if starved >= _STARVED * asked else Verdict.INCONCLUSIVE
        return verdict, f"; the device had nothing left to do in {starved} of {asked} waits" if asked else ""
    if share["q3"] <= _NO_WAIT:
        return Verdict.REFUTED, ""
    return Verdict.INCONCLUSIVE, ""


def _too_many(run: WatchedRun, site: Site, group: Group) -> Iterator[Judgement]:
    workers = max(record["num_workers"] for _, record in group)
    hosts: dict[str, int] = {}
    for evidence, _ in group:
        hosts[evidence.run.host] = hosts.get(evidence.run.host, 0) + 1
    seen = {evidence.run.rank for evidence, _ in group}
    ranks = max(1, min(len(seen), max(hosts.values())), *(record["local_world_size"] for _, record in group))
    cpus = min((evidence.environment.cpus for evidence, _ in group if evidence.environment.cpus), default=0.0)
    if not workers or not cpus:
        return
    total = workers * ranks
    reason = f"{counted(workers, 'worker')} for each of {counted(ranks, 'local rank')} on {cpus:g} CPUs"
    verdict = Verdict.VERIFIED if total > cpus else Verdict.REFUTED
    figure = Measurement("workers per CPU", total / cpus, "", n=len(group))
    judgement = Judgement(
        "dataloader-too-many-workers", _TOO_MANY, verdict, f"{reason} {run.scope().words}", run.scope(), (site,), figure
    )
    # The number of CPUs is this machine's, and the training's other one may have more.
    yield device_bound(run, judgement)


def _pinned(run: WatchedRun, site: Site, group: Group) -> Iterator[Judgement]:
    """What the profile says of copies; not yet run on CUDA. On a CPU there is nothing to copy and nothing to say."""
    if run.device not in ACCELERATORS or not any(
        record["batches"] > record["evaluation_batches"] for _, record in group
    ):
        return
    copies = [record for _, record in run.of("copies") if record.get("step_time")]
    if not copies:
        return
    rule = (
        "blocking-host-to-device-copy"
        if all(record["pin_memory"] for _, record in group)
        else "dataloader-without-pin-memory"
    )
    pageable = max(one["pageable"]["count"] for one in copies)
    share = max(one["pageable"]["time"] / one["step_time"] for one in copies)
    reason = f"{counted(pageable, 'copy', 'copies')} from pageable memory, {100 * share:.1f} % of the profiled step {run.scope().words}"
    figure = Measurement("share of the step that copies from pageable memory", share, "", n=len(copies))
    if rule == "dataloader-without-pin-memory" and pageable and share >= _NO_WAIT:
        verdict = Verdict.VERIFIED
    elif not pageable and any(one["pinned"]["count"] for one in copies) and rule == "dataloader-without-pin-memory":
        verdict = Verdict.REFUTED
    else:
        verdict = Verdict.INCONCLUSIVE
    yield device_bound(run, Judgement(rule, _PAGEABLE, verdict, reason, run.scope(), (site,), figure))


def _shuffled(run: WatchedRun, site: Site, group: Group) -> Iterator[Judgement]:
    records = [record for _, record in group if record["shuffle"]]
    trained = [[epoch for epoch, learns in record["epochs"] if learns] for record in records]
    passes = max(map(len, trained), default=0)
    if passes < 2:
        return
    figure = Measurement("passes over the data", float(passes), unit(passes, "pass"), n=passes)
    if any(record["set_epoch_calls"] for record in records):
        changed = all(len(set(epochs)) == len(epochs) for epochs in trained if len(epochs) > 1)
        verdict = Verdict.REFUTED if changed else Verdict.INCONCLUSIVE
        reason = f"set_epoch() was called, and {counted(passes, 'pass', 'passes')} had epochs {', '.join(map(str, trained[0][:5]))}"
    else:
        verdict = (
            Verdict.VERIFIED if all(len(set(epochs)) == 1 for epochs in trained if epochs) else Verdict.INCONCLUSIVE
        )
        reason = f"{counted(passes, 'pass', 'passes')} were shuffled with epoch {trained[0][0]}, and set_epoch() was not called"
    places = distinct([site, *(loop for record in records for loop in record["loops"])])
    yield Judgement(
        "sampler-without-set-epoch", _SAME_ORDER, verdict, f"{reason} {run.scope().words}", run.scope(), places, figure
    )
