"""Optimizers: fused or not, by their flags and the kernels of the profiled step."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ldlm_lint.evidence.model import Judgement, Measurement, Verdict, site_of
from ldlm_lint.evidence.verdicts.by_place import counted
from ldlm_lint.evidence.verdicts.grouping import Place, judgement, places
from ldlm_lint.evidence.watched import ACCELERATORS, WatchedRun, device_bound

FUSABLE = frozenset({"SGD", "Adam", "AdamW", "Adagrad"})
# torch's operators on any device, and the functors in the names of its CUDA kernels (these not yet seen on CUDA).
_FUSED = re.compile(r"aten::_fused_(adamw?|sgd|adagrad)_|Fused(Adam|Sgd|Adagrad)MathFunctor")
_FOREACH = re.compile(r"aten::_foreach_(addcdiv|addcmul|lerp)|multi_tensor_apply_kernel(?!.*Fused)")
_COMPILED = re.compile(r"Torch-Compiled Region|CompiledFunction|triton_|CachingAutotuner")
_PLAIN_TYPES = frozenset({"Tensor", "Parameter", "DTensor"})
# torch's error for a fused step over unsupported parameters, since 2.5 in the first step.
_UNSUPPORTED = re.compile(r"`?fused=True`? requires all the params")


def judge(run: WatchedRun) -> Iterable[Judgement]:
    """The judgements about optimizers, by the place that creates them."""
    for place in places(run.of("optimizers")):
        yield from _not_fused(run, place)
        yield from _conflict(run, place)
        yield from _lost(run, place)
    yield from _fallbacks(run)


def _not_fused(run: WatchedRun, place: Place) -> Iterable[Judgement]:
    records = [
        one
        for one in place.records
        if one["steps"] and one["class"] in FUSABLE and _is_torchs(one) and not one["error"]
    ]
    if not records:
        return
    compiles = any(values["calls"] for _, values in run.of("compilation"))
    states = {_state(one, compiles=compiles) for one in records}
    verdict, what = (
        states.pop() if len(states) == 1 else (Verdict.INCONCLUSIVE, "some of the optimizers made here are fused")
    )
    one = records[0]
    away = _elsewhere(run, one)
    if away:
        verdict, what = Verdict.INCONCLUSIVE, away
    reason = f"{one['class']} over {counted(one.get('tensors', 0), 'tensor')}: {what}{_subclass(one)}"
    kernels = {
        name: number for name, number in (one["kernels"] or {}).items() if _FUSED.search(name) or _FOREACH.search(name)
    }
    ran = sum(number for name, number in kernels.items() if _FUSED.search(name))
    detail = {
        "kernels": kernels,
        "flags": one["groups"],
        "tensors": one.get("tensors"),
        "elements": one.get("elements"),
    }
    measured = Measurement(
        "optimizer-kernels", ran if one["kernels"] is not None else None, "kernels", n=one["steps"], detail=detail
    )
    claim = "the optimizer's step is not fused"
    yield device_bound(run, judgement(run, "optimizer-not-fused", claim, verdict, reason, (place.site,), measured))


def _state(record: Mapping[str, Any], *, compiles: bool) -> tuple[Verdict, str]:
    """The result of the flags and the kernels of one optimizer; ``compiles``: the program calls torch.compile."""
    on = [group for group in record["groups"] if group.get("fused")]
    names = record["kernels"]
    if names is None:
        if not on and compiles:
            return Verdict.INCONCLUSIVE, "fused is off, but a compiled step is fused, and its kernels were not profiled"
        if not on:
            return Verdict.VERIFIED, "fused is off in all of its groups (its kernels were not profiled)"
        return Verdict.INCONCLUSIVE, "fused is on, but its kernels were not profiled"
    if any(_COMPILED.search(name) for name in names):
        return Verdict.INCONCLUSIVE, "its step is compiled, so its kernels have other names"
    fused = [match.group() for name in names if (match := _FUSED.search(name))]
    if fused:
        rest = len(on) < len(record["groups"])
        verdict = Verdict.INCONCLUSIVE if rest else Verdict.REFUTED
        return verdict, f"{fused[0]} ran{', but not for all of its groups' if rest else ''}"
    if on:
        return Verdict.INCONCLUSIVE, "fused is on, but no kernel of the profiled step has a known fused name"
    foreach = next((match.group() for name in names if (match := _FOREACH.search(name))), "")
    return Verdict.VERIFIED, f"no fused kernel ran{f', but {foreach}' if foreach else ''}"


def _subclass(record: Mapping[str, Any]) -> str:
    special = [one for one in record.get("types", ()) if one not in _PLAIN_TYPES]
    default = all(group.get("foreach") is None and not group.get("fused") for group in record["groups"])
    return f" ({special[0]} prevents torch's foreach implementation)" if special and default else ""


def _elsewhere(run: WatchedRun, record: Mapping[str, Any]) -> str:
    """Why a run on the right device is inconclusive for an optimizer whose parameters are on another one."""
    devices = record.get("devices") or []
    wanted = run.target or (run.device if run.device in ACCELERATORS else "")
    return f"its parameters are on {' and '.join(devices)}" if devices and wanted and wanted not in devices else ""


def _is_torchs(record: Mapping[str, Any]) -> bool:
    return str(record["module"]).startswith("torch.optim")


def _conflict(run: WatchedRun, place: Place) -> Iterable[Judgement]:
    raised = [one for one in place.records if one["error"] and one["asked"].get("fused") and "fused" in one["error"]]
    if raised:
        claim = "the constructor raises with fused=True"
        reason = f"{raised[0]['class']}(fused=True) raised {raised[0]['error'][:160]}"
        yield judgement(run, "fused-conflict", claim, Verdict.VERIFIED, reason, (place.site,))


def _lost(run: WatchedRun, place: Place) -> Iterable[Judgement]:
    """The effect of restoring a state on an optimizer that was fused before."""
    loads = [load for one in place.records for load in one["loads"] if _all_fused(load["before"]) and load["after"]]
    if not loads:
        return
    lost = [load for load in loads if not _all_fused(load["after"])]
    # A state without entries is not from a checkpoint: accelerate restores an optimizer's own state.
    if not lost and not any(load["entries"] for load in loads):
        return
    verdict = Verdict.VERIFIED if lost else Verdict.REFUTED
    what = "switched fused off, as it was when the state was written" if lost else "left fused on"
    claim = "restoring its state switches fused off"
    reason = f"load_state_dict {what} ({len(lost)} of {counted(len(loads), 'load')})"
    loaded = site_of((lost or loads)[0].get("site"))
    yield judgement(run, "fused-lost-on-resume", claim, verdict, reason, (place.site, loaded))


def _all_fused(groups: Iterable[Mapping[str, Any]]) -> bool:
    groups = list(groups)
    return bool(groups) and all(one.get("fused") for one in groups)


def _fallbacks(run: WatchedRun) -> Iterable[Judgement]:
    """Whether a constructor with ``fused`` raised, so that a handler could continue, or only the first step."""
    rule, claim = "fused-fallback-ineffective", "the constructor accepts parameters that the first step rejects"
    for evidence, one in run.of("optimizers"):
        site = site_of(one.get("site"))
        if site is None or not one["asked"].get("fused"):
            continue
        if not one["error"] and one["steps"] == 1 and _UNSUPPORTED.search(evidence.run.exception):
            reason = f"{one['class']}(fused=True) was created, and its first step raised: {evidence.run.exception[:160]}"
            yield judgement(run, rule, claim, Verdict.VERIFIED, reason, (site,))
        elif one["error"] and _replaced(evidence.observations["optimizers"], one):
            reason = (
                f"the constructor itself raised ({one['error'][:100]}), and the optimizer created instead stepped"
            )
            yield judgement(run, rule, claim, Verdict.REFUTED, reason, (site,))


def _replaced(records: Iterable[Mapping[str, Any]], failed: Mapping[str, Any]) -> bool:
    def function(one: Mapping[str, Any]) -> tuple[str, str] | None:
        site = site_of(one.get("site"))
        return (site.path, site.function) if site else None

    home = function(failed)
    return any(one is not failed and one["steps"] and not one["error"] and function(one) == home for one in records)
