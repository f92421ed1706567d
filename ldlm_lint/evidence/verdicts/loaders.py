"""What DataLoaders were told, how often their workers started, what the training waited for, and how data was shuffled."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ldlm_lint.evidence.model import Evidence, Judgement, Measurement, Site, Verdict
from ldlm_lint.evidence.verdicts.by_place import agreed, by_site, counted, distinct, unit
from ldlm_lint.evidence.watched import ACCELERATORS, WatchedRun, device_bound

_FEWEST_WAITS = 5
_WAITS = 0.10
_NO_WAIT = 0.02
_DEFAULT_PREFETCH = 2
# Above this share of time in which runnable tasks waited for a CPU, wall-clock figures say nothing.
_PRESSURE = 20.0
_RESTARTED = "each iteration of this loader starts its workers anew"
_WAITED = "the training waits for this loader"
_TOO_MANY = "the loaders of a node's ranks start more workers than there are CPUs"
_SAME_ORDER = "every pass over the data is in the same order: the sampler's epoch stays as it is"
_PAGEABLE = "batches are copied to the device from pageable memory"

Group = Sequence[tuple[Evidence, Any]]


def judge(run: WatchedRun) -> Iterable[Judgement]:
    """Judge the rules about loaders by the place that makes them, and about samplers."""
    for site, group in by_site(run.of("loaders")):
        yield from _persistent(run, site, group)
        yield from _in_main_process(run, site, group)
        yield from _prefetch(run, site, group)
        yield from _too_many(run, site, group)
        yield from _pinned(run, site, group)
    for site, group in by_site(run.of("samplers")):
        yield from _shuffled(run, site, group)


def _persistent(run: WatchedRun, site: Site, group: Group) -> Iterator[Judgement]:
    records = [record for _, record in group if record["num_workers"]]
    if not records:
        return
    starts = max(record["worker_starts"] for record in records)
    iterators = max(record["iterators"] for record in records)
    passes = counted(iterators, "iteration")
    if any(record["persistent_workers"] for record in records):
        verdict = Verdict.REFUTED if iterators > 1 and starts == 1 else Verdict.INCONCLUSIVE
        reason = f"its workers are persistent: started {counted(starts, 'time')} for {passes}"
    elif starts > 1:
        verdict = Verdict.VERIFIED
        reason = f"{counted(records[0]['num_workers'], 'worker')} started {starts} times for {passes}{_first_batches(records)}"
    else:
        verdict, reason = Verdict.INCONCLUSIVE, "it was iterated once: workers that start again were not seen"
    figure = Measurement("starts of the workers", float(starts), unit(starts, "start"), n=iterators)
    rule = "dataloader-without-persistent-workers"
    yield Judgement(rule, _RESTARTED, verdict, f"{reason} {run.scope().words}", run.scope(), (site,), figure)


def _first_batches(records: list[Any]) -> str:
    later = [one for record in records for one in record["first_waits"][1:]]
    steady = [record["wait_seconds"]["median"] for record in records if record["wait_seconds"]["n"] >= _FEWEST_WAITS]
    if not later:
        return ""
    said = f"; the first batch of a later one came after {1000 * sorted(later)[len(later) // 2]:.0f} ms"
    return said + (f", others after {1000 * max(steady):.0f} ms" if steady else "")


def _in_main_process(run: WatchedRun, site: Site, group: Group) -> Iterator[Judgement]:
    rule = "dataloader-in-main-process"
    workers = {record["num_workers"] for _, record in group}
    if 0 not in workers:
        reason = f"this loader has {counted(max(workers), 'worker')} {run.scope().words}"
        yield Judgement(rule, _WAITED, Verdict.REFUTED, reason, run.scope(), (site,))
    elif workers == {0}:
        yield from _waits(run, site, group, rule)


def _prefetch(run: WatchedRun, site: Site, group: Group) -> Iterator[Judgement]:
    rule = "dataloader-without-prefetch"
    if not all(record["num_workers"] for _, record in group):
        return
    factors = {record["prefetch_factor"] for _, record in group}
    if _DEFAULT_PREFETCH not in factors:
        reason = f"its prefetch_factor is {max(one or 0 for one in factors)} {run.scope().words}"
        yield Judgement(rule, _WAITED, Verdict.REFUTED, reason, run.scope(), (site,))
    else:
        yield from _waits(run, site, group, rule)


def _waits(run: WatchedRun, site: Site, group: Group, rule: str) -> Iterator[Judgement]:
    """The share of the steady iterations that waits for the loader; it is bound to the device that computes meanwhile."""
    shares = [record["wait_share"] for _, record in group if record["wait_share"]["n"] >= _FEWEST_WAITS]
    if not shares:
        most = max(record["wait_share"]["n"] for _, record in group)
        if any(record["batches"] > record["evaluation_batches"] for _, record in group):
            reason = f"only {counted(most, 'steady iteration')} of a training with this loader seen {run.scope().words}"
            yield Judgement(rule, _WAITED, Verdict.INCONCLUSIVE, reason, run.scope(), (site,))
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
    judgement = Judgement(rule, _WAITED, verdict, f"{reason}{remark} {run.scope().words}", run.scope(), (site,), figure)
    yield device_bound(run, judgement)


def _share_verdict(run: WatchedRun, share: Any, group: Group) -> tuple[Verdict, str]:
    pressure = max((one.environment.cpu_pressure or 0.0 for one in run.ranks), default=0.0)
    if pressure > _PRESSURE:
        return Verdict.INCONCLUSIVE, f"; the machine was busy (CPU pressure {pressure:.0f} %)"
    asked = sum(record["device_asked"] for _, record in group)
    starved = sum(record["device_starved"] for _, record in group)
    if asked and not starved:
        return Verdict.REFUTED, f"; the device was still computing at the end of all {asked} waits"
    if share["q1"] >= _WAITS:
        return Verdict.VERIFIED, f"; the device had run dry in {starved} of {asked} waits" if asked else ""
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
    records = [record for _, record in group if record["shuffle"] and len(_trained(record)) >= 2]
    if not records:
        return
    passes = max(len(_trained(record)) for record in records)
    figure = Measurement("passes over the data", float(passes), unit(passes, "pass"), n=passes)
    # One line may make several samplers: each is judged by its own passes and its own calls.
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
    """The epochs of the passes that the program learnt from."""
    return [epoch for epoch, learns in record["epochs"] if learns]


def _of_sampler(record: Any) -> Verdict:
    epochs = _trained(record)
    if record["set_epoch_calls"]:
        return Verdict.REFUTED if len(set(epochs)) == len(epochs) else Verdict.INCONCLUSIVE
    return Verdict.VERIFIED if len(set(epochs)) == 1 else Verdict.INCONCLUSIVE


def _differing(verdicts: Sequence[Verdict]) -> str:
    right, stale = verdicts.count(Verdict.REFUTED), verdicts.count(Verdict.VERIFIED)
    return f"{right} had another epoch in each pass, {stale} the same in all"
