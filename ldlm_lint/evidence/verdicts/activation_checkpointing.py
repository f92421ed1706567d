"""Whether blocks were recomputed in the backward pass, and how much of a model one segment contains."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ldlm_lint.evidence.model import Evidence, Judgement, Measurement, Verdict
from ldlm_lint.evidence.verdicts.by_place import agreed, by_site, counted, distinct, listed, unit
from ldlm_lint.evidence.watched import WatchedRun

_MISSING = "the model trains without activation checkpointing"
# Whether recomputation pays depends on the memory that the training has, which observing the unchanged program does not
# show.
_PAYS = "to measure whether it pays off: `ldlm-lint bench` or `ldlm-lint probe memory`"
_WHOLE = "one checkpointed segment holds a whole stack of blocks and recomputes all of them at once"
_MISUSE = "the reentrant checkpoint gives the parameters of its segment no gradients"


def judge(run: WatchedRun) -> Iterable[Judgement]:
    """Judge missing-activation-checkpointing, whole-model-checkpoint and reentrant-checkpoint-misuse."""
    checkpointing = {id(evidence): record for evidence, record in run.of("activation_checkpointing")}
    yield from _missing(run, checkpointing)
    segments = [
        (evidence, one) for evidence, record in run.of("activation_checkpointing") for one in record["segments"]
    ]
    stacks = {stack["name"]: stack for _, model in run.of("models") for stack in model["stacks"]}
    for site, group in by_site(segments):
        records = [record for _, record in group]
        yield from _whole(run, site, records, stacks)
        yield from _misuse(run, site, records)


def _missing(run: WatchedRun, checkpointing: dict[int, Any]) -> Iterator[Judgement]:
    groups: dict[tuple[str, str], list[tuple[Evidence, Any]]] = {}
    for evidence, model in run.of("models"):
        if _stacks(model) and id(evidence) in checkpointing and checkpointing[id(evidence)]["steps"]:
            place = str(model["site"] or model["construction"] or "")
            groups.setdefault((model["class"], place), []).append((evidence, model))
    for group in groups.values():
        judged = [_of_model(model, checkpointing[id(evidence)]) for evidence, model in group]
        verdict = agreed([one for one, _ in judged])
        reason = next(
            (text for one, text in judged if one is verdict),
            "the ranks differ: " + "; ".join({text for _, text in judged}),
        )
        evidence, model = group[0]
        peak = checkpointing[id(evidence)]["peak"]
        yield Judgement(
            "missing-activation-checkpointing",
            _MISSING,
            verdict,
            f"{reason} {_observed(run, checkpointing[id(evidence)])}",
            run.scope(),
            _places(model),
            _peak(peak),
        )


def _of_model(model: Any, checkpointing: Any) -> tuple[Verdict, str]:
    stacks = _stacks(model)
    what = listed(f"{stack['count']} {stack['block']}" for stack in stacks)
    again = [stack for stack in stacks if stack["recomputed"]]
    if again:
        seen = listed(f"{stack['recomputed']} of {stack['count']} {stack['block']}" for stack in again)
        return Verdict.REFUTED, f"{seen} of {model['class']} ran their forward again inside the backward pass"
    if model["compiled"]:
        return (
            Verdict.INCONCLUSIVE,
            f"{model['class']} is compiled, and hooks do not see what a compiled region recomputes",
        )
    calls = sum(segment["calls"] for segment in checkpointing["segments"])
    if calls or checkpointing["recomputed"]:
        names = listed(checkpointing["recomputed"])
        seen = f"{counted(calls, 'call')} of checkpoint()" if calls else f"recomputed modules ({names})"
        return (
            Verdict.INCONCLUSIVE,
            f"none of {what} of {model['class']} was recomputed as a block, but there were {seen}",
        )
    if model["switches"]:
        switches = listed(model["switches"])
        return (
            Verdict.INCONCLUSIVE,
            f"none of {what} of {model['class']} was recomputed, but there is a switch ({switches})",
        )
    return (
        Verdict.VERIFIED,
        f"no activation checkpointing seen ({_PAYS}): none of {what} of {model['class']} ran its forward again",
    )


def _stacks(model: Any) -> list[Any]:
    """The stacks that ran; calls of a compiled model are not visible."""
    return [stack for stack in model["stacks"] if stack["called"] or model["compiled"]]


def _observed(run: WatchedRun, checkpointing: Any) -> str:
    words = run.scope().words
    behind = words.partition(" steps")[2] or words.partition(" step")[2]
    return f"in {counted(checkpointing['steps'], 'observed step')}{behind or ' ' + words}"


def _places(model: Any) -> tuple[Any, ...]:
    stacks = _stacks(model)
    owners = [stack["site"] for stack in stacks]
    built = [stack["construction"] for stack in stacks if stack["site"] is None]
    forwards = [stack["forward"] for stack in stacks]
    return distinct([*owners, model["site"], *built, model["construction"], *forwards])


def _peak(peak: Any) -> Measurement | None:
    for key, metric in (
        ("cuda_peak_bytes", "peak device memory"),
        ("cpu_profile_bytes", "peak memory of the profiled step"),
    ):
        if peak.get(key):
            return Measurement(metric, float(peak[key]), "bytes", n=1)
    return None


def _whole(run: WatchedRun, site: Any, records: list[Any], stacks: dict[str, Any]) -> Iterator[Judgement]:
    widest: dict[str, int] = {}
    for record in records:
        for name, blocks in record["widest"].items():
            widest[name] = max(widest.get(name, 0), blocks)
    known = {name: blocks for name, blocks in widest.items() if name in stacks and stacks[name]["count"] >= 2}
    if not known:
        return
    name = max(known, key=lambda one: known[one] / stacks[one]["count"])
    blocks, stack = known[name], stacks[name]
    figure = Measurement(
        "blocks in one recomputation",
        float(blocks),
        unit(blocks, "block"),
        n=sum(one["recomputations"] for one in records),
    )
    seen = f"one recomputation of this segment ran {blocks} of {stack['count']} {stack['block']} ({name})"
    if blocks == stack["count"]:
        verdict = Verdict.VERIFIED
    elif 2 * blocks <= stack["count"]:
        verdict = Verdict.REFUTED
    else:
        verdict = Verdict.INCONCLUSIVE
    yield Judgement(
        "whole-model-checkpoint", _WHOLE, verdict, f"{seen} {run.scope().words}", run.scope(), (site,), figure
    )


def _misuse(run: WatchedRun, site: Any, records: list[Any]) -> Iterator[Judgement]:
    reentrant = [one for one in records if one["reentrant"]]
    if not reentrant:
        return
    calls = sum(one["calls"] for one in reentrant)
    without = sum(one["inputs_without_gradient"] for one in reentrant)
    missing = sum(one["steps_without_gradients"] for one in reentrant)
    whole = sum(one["steps_with_gradients"] for one in reentrant)
    modules = listed(sorted({name for one in reentrant for name in one["modules"]}))
    if calls and calls == without and missing and not whole:
        reason = f"in none of {counted(calls, 'call')} an input required a gradient, and {modules} got no gradients {run.scope().words}"
        yield Judgement("reentrant-checkpoint-misuse", _MISUSE, Verdict.VERIFIED, reason, run.scope(), (site,))
    elif not without and whole and not missing:
        reason = f"in each of {counted(calls, 'call')} an input required a gradient, and {modules} got gradients {run.scope().words}"
        yield Judgement("reentrant-checkpoint-misuse", _MISUSE, Verdict.REFUTED, reason, run.scope(), (site,))
