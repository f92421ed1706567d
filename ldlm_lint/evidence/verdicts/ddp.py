"""The behaviour of DistributedDataParallel: unused parameters, reductions per step, gradients held twice, buffers that
differ."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ldlm_lint.evidence.amounts import amount
from ldlm_lint.evidence.model import Evidence, Judgement, Measurement, Site, Verdict
from ldlm_lint.evidence.settling import RANKS, STEPS
from ldlm_lint.evidence.verdicts.by_place import agreed, by_site, counted, distinct, listed, ranks_of, unit
from ldlm_lint.evidence.watched import WatchedRun

_FEWEST_ITERATIONS = 3
_LITTLE = 1 << 20
_UNUSED = "find_unused_parameters=True is set, and each parameter gets its gradient on every rank in every step"
_ACCUMULATED = "DDP reduces the gradients of every micro-batch, although the optimizer steps only after several"
_TWICE = "DDP holds every gradient twice, in .grad and in its buckets"
_DIFFER = "buffers differ between the ranks after DDP wrapped the model"
_FROZEN = "parameters are frozen only after DDP has wrapped the model"

Group = Sequence[tuple[Evidence, Any]]


def judge(run: WatchedRun) -> Iterable[Judgement]:
    """Judge the rules about DDP's wrapper, by the place that wraps."""
    for site, group in by_site(run.of("ddp")):
        yield from _unused(run, site, [one for one in group if one[1]["flags"]["find_unused_parameters"]])
        yield from _accumulated(run, site, group)
        yield from _copied(run, site, group)
        yield from _buffers(run, site, group)
        yield from _frozen(run, site, group)


def _unused(run: WatchedRun, site: Site, group: Group) -> Iterator[Judgement]:
    if not group:
        return
    verdict, reason, settled_by = _whether_unused(run, group)
    iterations = min(record["checked_iterations"] for _, record in group)
    count = max(record["unused_count"] for _, record in group)
    figure = (
        Measurement("parameters without gradient", float(count), "parameters", n=iterations) if iterations else None
    )
    lifts = verdict is Verdict.VERIFIED and len(ranks_of(group)) > 1
    yield Judgement("ddp-find-unused-parameters", _UNUSED, verdict, reason, run.scope(), (site,), figure, lifts, settled_by)


def _whether_unused(run: WatchedRun, group: Group) -> tuple[Verdict, str, str]:
    names = sorted({name for _, record in group for name in record["unused"]})
    ranks = sorted(evidence.run.rank for evidence, record in group if record["unused_count"])
    iterations = min(record["checked_iterations"] for _, record in group)
    steps = min(run.scope().steps, iterations)
    scope = f"in {counted(steps, 'step')} on {counted(len(ranks_of(group)), 'rank')} ({run.device})"
    if names:
        count = max(record["unused_count"] for _, record in group)
        where = (
            f"on rank {listed(map(str, ranks))}" if len(ranks) < len(run.ranks) or len(ranks) == 1 else "on every rank"
        )
        return (
            Verdict.REFUTED,
            f"{counted(count, 'parameter')} without gradient ({listed(names, count)}) {where} {scope}: the flag is needed",
            "",
        )
    if any(record["compiled"] for _, record in group):
        return Verdict.INCONCLUSIVE, "the model is compiled, so unused parameters were not observed", ""
    if any(record["reducer"].get("unused_parameter_size", 0) for _, record in group):
        return Verdict.INCONCLUSIVE, f"DDP itself counted unused parameters, but none was seen {scope}", ""
    if not run.complete or ranks_of(group) != {one.run.rank for one in run.ranks}:
        return Verdict.INCONCLUSIVE, f"no unused parameter seen {scope}, but some ranks left no evidence", RANKS
    if run.scope().world_size < 2:
        return Verdict.INCONCLUSIVE, f"no unused parameter seen {scope}, and other ranks may leave other parameters unused", RANKS
    if iterations < _FEWEST_ITERATIONS:
        return Verdict.INCONCLUSIVE, f"no unused parameter seen, but only {scope}", STEPS
    return Verdict.VERIFIED, f"no unused parameter seen {scope}", ""


def _accumulated(run: WatchedRun, site: Site, group: Group) -> Iterator[Judgement]:
    judged = [_of_steps(record) for _, record in group if record["backwards"]]
    if not judged:
        return
    verdict = agreed([one for one, _, _ in judged])
    passes, steps = next(
        (most, steps) for one, most, steps in judged if one is verdict or verdict is Verdict.INCONCLUSIVE
    )
    text = {
        Verdict.VERIFIED: f"each of the {passes} backward passes of a step reduced the gradients; the last one is enough",
        Verdict.REFUTED: f"of the {passes} backward passes of a step only the last one reduced the gradients",
        Verdict.INCONCLUSIVE: "some of the passes before the last one of a step reduced the gradients, others did not"
        if passes > 1
        else "each optimizer step had one backward pass: nothing was accumulated",
    }[verdict]
    scope = f"in {counted(steps, 'step')} on {counted(len(ranks_of(group)), 'rank')} ({run.device})"
    profiled = [record["all_reduces_in_profiled_step"] for _, record in group]
    detail = {"all-reduces in the profiled step": profiled[0]} if profiled[0] is not None else {}
    figure = Measurement("backward passes per step", float(passes), unit(passes, "pass"), n=steps, detail=detail)
    places = [one for _, record in group for one in _backward_places(record)]
    rule = "accumulation-without-no-sync"
    yield Judgement(rule, _ACCUMULATED, verdict, f"{text} {scope}", run.scope(), distinct([*places, site]), figure)


def _of_steps(record: Any) -> tuple[Verdict, int, int]:
    """The verdict of one rank, the most passes from one place within a step, and the number of steps."""
    repeated = [found for step in record["backwards"] if len(found := _repeated(step)) > 1]
    steps = len(record["backwards"])
    most = max(map(len, repeated), default=1)
    if repeated and all(all(step) for step in repeated):
        # A static graph cannot take no_sync() in its first iteration.
        return (Verdict.INCONCLUSIVE if record["flags"]["static_graph"] else Verdict.VERIFIED), most, steps
    if repeated and all(step[-1] and not any(step[:-1]) for step in repeated):
        return Verdict.REFUTED, most, steps
    return Verdict.INCONCLUSIVE, most, steps


def _repeated(step: Sequence[Sequence[Any]]) -> list[bool]:
    """Whether each pass of an accumulation reduced gradients.

    Passes without reduction belong together at any place; passes with reduction only at the same place, since two
    places are two losses.
    """
    if not all(reduced for _, reduced in step):
        return [reduced for _, reduced in step]
    places = [place for place, _ in step]
    most = max(places, key=places.count)
    return [reduced for place, reduced in step if place == most]


def _backward_places(record: Any) -> list[Any]:
    used = sorted({place for step in record["backwards"] for place, _ in step})
    return [record["backward_sites"][place] for place in used]


def _copied(run: WatchedRun, site: Site, group: Group) -> Iterator[Judgement]:
    looked = [record for _, record in group if record["gradients"]]
    if not looked:
        return
    size = max(record["gradient_bytes"] for record in looked)
    views = [record["flags"]["gradient_as_bucket_view"] for record in looked]
    alone = [record["gradients"]["stores"] == record["gradients"]["count"] for record in looked]
    count, stores = looked[0]["gradients"]["count"], looked[0]["gradients"]["stores"]
    shown = f"{counted(count, 'gradient')} in {counted(stores, 'memory block')}"
    figure = Measurement("bytes of gradients held twice", float(0 if all(views) else size), "bytes", n=len(looked))
    if all(views) and not all(alone):
        verdict, reason = Verdict.REFUTED, f"the gradients are views of DDP's buckets: {shown}"
    elif any(views) or not all(alone):
        verdict, reason = Verdict.INCONCLUSIVE, f"it is unclear whether the gradients are views of DDP's buckets: {shown}"
    elif size < _LITTLE:
        verdict, reason = Verdict.INCONCLUSIVE, f"the gradients and their copies in DDP's buckets take {amount(size, 'bytes')} each, too little to matter"
    else:
        verdict, reason = Verdict.VERIFIED, f"{counted(count, 'gradient')} of {amount(size, 'bytes')} have separate memory besides DDP's buckets"
    yield Judgement("ddp-gradient-copy", _TWICE, verdict, f"{reason} {run.scope().words}", run.scope(), (site,), figure)


def _buffers(run: WatchedRun, site: Site, group: Group) -> Iterator[Judgement]:
    sums: dict[str, set[str]] = {}
    for _, record in group:
        for name, checksum in record["buffers"].items():
            sums.setdefault(name, set()).add(checksum)
    differ = sorted(name for name, seen in sums.items() if len(seen) > 1)
    if len(ranks_of(group)) > 1 and differ:
        reason = f"{listed(differ)} not the same on {counted(len(ranks_of(group)), 'rank')} after the constructor ({run.device})"
        yield Judgement("ddp-broadcast-buffers", _DIFFER, Verdict.VERIFIED, reason, run.scope(), (site,))


def _frozen(run: WatchedRun, site: Site, group: Group) -> Iterator[Judgement]:
    names = sorted({name for _, record in group for name in record["frozen_after_wrap"]})
    whole = all(len(record["frozen_after_wrap"]) == record["parameters"] for _, record in group)
    if names and not whole:
        reason = f"{listed(names)} required a gradient when DDP wrapped the model, but not when the optimizer stepped, {run.scope().words}"
        yield Judgement("parameters-frozen-after-wrap", _FROZEN, Verdict.VERIFIED, reason, run.scope(), (site,))
