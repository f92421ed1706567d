"""The number of workers per node, the memory from which batches are copied, and the shuffling of data."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ldlm_lint.evidence.model import Evidence, Judgement, Measurement, Site, Verdict
from ldlm_lint.evidence.settling import QUIET, STEPS
from ldlm_lint.evidence.verdicts.by_place import agreed, by_site, counted, distinct, unit
from ldlm_lint.evidence.watched import ACCELERATORS, WatchedRun, device_bound

_NO_WAIT = 0.02
_TOO_MANY = "the ranks of a node start more DataLoader workers than it has CPUs, which slows loading down"
# Seconds of all workers together, from which on their load says something.
_FEWEST_SECONDS = 1.0
# The shares of their time that workers wait for a CPU: so little costs nothing, so much does.
_FEW_WAITS, _MANY_WAITS = 0.05, 0.20
# The share of all CPUs that is enough for more workers.
_LITTLE = 0.50
# Workers that neither read nor wait for the training compute, or wait for a CPU, for most of their time.
_ONLY_COMPUTE = 0.80
_SAME_ORDER = "every epoch uses the data in the same order: set_epoch() is not called"
_PAGEABLE = "batches are copied to the device from pageable memory"

Group = Sequence[tuple[Evidence, Any]]


def judge(run: WatchedRun) -> Iterable[Judgement]:
    """Judge the rules about loaders by the place that creates them, and about samplers."""
    for site, group in by_site(run.of("loaders")):
        yield from _too_many(run, site, group)
        yield from _pinned(run, site, group)
    for site, group in by_site(run.of("samplers")):
        yield from _shuffled(run, site, group)


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
    shown = f"{counted(ranks, 'rank')} on this node with {counted(workers, 'worker')} each: {total} for {cpus:g} CPUs"
    reason = shown if ranks > 1 else f"{counted(workers, 'worker')} for {cpus:g} CPUs"
    verdict, settled_by = Verdict.REFUTED, ""
    if total > cpus:
        verdict, load, settled_by = _competing(run, group, total / cpus)
        reason += f"; {load}"
    figure = Measurement("workers per CPU", total / cpus, "", n=len(group))
    judgement = Judgement(
        "dataloader-too-many-workers", _TOO_MANY, verdict, f"{reason} {run.scope().words}", run.scope(), (site,), figure
    )
    # The number of CPUs is that of this machine; the training machine may have more.
    yield device_bound(run, dataclasses.replace(judgement, settled_by=settled_by))


def _competing(run: WatchedRun, group: Group, per_cpu: float) -> tuple[Verdict, str, str]:
    """Whether more workers than CPUs (``per_cpu`` for each) are too many, by what they did: workers that wait for a disk
    load faster if there are more of them. With a text and what would decide it."""
    loads = [load for _, record in group if (load := record.get("worker_load"))]
    seconds, computed, waited = (sum(one[key] for one in loads) for key in ("seconds", "computed", "waited_for_cpu"))
    if seconds < _FEWEST_SECONDS:
        short = "too short to say whether they wait for a CPU" if loads else "whether they wait for a CPU was not recorded"
        return Verdict.INCONCLUSIVE, short, STEPS
    said = f"a worker computed {100 * computed / seconds:.0f} % of the time and waited {100 * waited / seconds:.0f} % for a CPU"
    # Waiting beside other programs, they may all together need little of the CPUs.
    if waited <= _FEW_WAITS * seconds or (computed + waited) * per_cpu <= _LITTLE * seconds:
        return Verdict.REFUTED, said, ""
    if waited < _MANY_WAITS * seconds or computed + waited < _ONLY_COMPUTE * seconds:
        return Verdict.INCONCLUSIVE, f"{said}: fewer workers may be slower", ""
    return (Verdict.INCONCLUSIVE, f"{said}; {run.busy}", QUIET) if run.busy else (Verdict.VERIFIED, said, "")


def _pinned(run: WatchedRun, site: Site, group: Group) -> Iterator[Judgement]:
    """The copies in the profile. On a CPU there are no copies."""
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
    records = [record for _, record in group if record["shuffle"] and len(_trained(record)) >= 2]
    if not records:
        return
    passes = max(len(_trained(record)) for record in records)
    figure = Measurement("passes over the data", float(passes), unit(passes, "pass"), n=passes)
    # One line may create several samplers: each is judged by its own passes and its own calls.
    verdicts = [_of_sampler(record) for record in records]
    verdict = agreed(verdicts)
    if len(set(verdicts)) > 1:
        reason = f"{counted(len(records), 'sampler')} made here differ: {_differing(verdicts)}"
    else:
        epochs = _trained(records[0])
        shown = ", ".join(map(str, epochs[:5]))
        reason = (
            f"set_epoch() was called, and {counted(passes, 'pass', 'passes')} had epochs {shown}"
            if records[0]["set_epoch_calls"]
            else f"{counted(passes, 'pass', 'passes')} were shuffled with epoch {epochs[0]}, and set_epoch() was not called"
        )
    places = distinct([site, *(loop for record in records for loop in record["loops"])])
    yield Judgement(
        "sampler-without-set-epoch", _SAME_ORDER, verdict, f"{reason} {run.scope().words}", run.scope(), places, figure
    )


def _trained(record: Any) -> list[int]:
    """The epochs of the passes used for training."""
    return [epoch for epoch, learns in record["epochs"] if learns]


def _of_sampler(record: Any) -> Verdict:
    epochs = _trained(record)
    if record["set_epoch_calls"]:
        return Verdict.REFUTED if len(set(epochs)) == len(epochs) else Verdict.INCONCLUSIVE
    return Verdict.VERIFIED if len(set(epochs)) == 1 else Verdict.INCONCLUSIVE


def _differing(verdicts: Sequence[Verdict]) -> str:
    right, stale = verdicts.count(Verdict.REFUTED), verdicts.count(Verdict.VERIFIED)
    return f"{right} had another epoch in each pass, {stale} the same in all"
