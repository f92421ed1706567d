"""Gradients: kept as zeros, clipped while they are scaled, scaled unnecessarily."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from typing import Any

from ldlm_lint.evidence.amounts import amount
from ldlm_lint.evidence.model import Evidence, Judgement, Measurement, Verdict, site_of
from ldlm_lint.evidence.verdicts.by_place import counted
from ldlm_lint.evidence.verdicts.grouping import Place, judgement, parts, places
from ldlm_lint.evidence.watched import WatchedRun, device_bound


def judge(run: WatchedRun) -> Iterable[Judgement]:
    """The judgements about ``zero_grad``, clipping and gradient scalers."""
    for place in places(run.of("zeroed_gradients")):
        yield from _zeros(run, place)
    for place in places(parts(run, "gradient_scaling", "clips")):
        yield from _clipping(run, place)
    for place in places(_scalers(run)):
        yield from _scaler(run, place)


def _zeros(run: WatchedRun, place: Place) -> Iterable[Judgement]:
    keeping = [one for one in place.records if one["keeps"]]
    claim = "zero_grad() keeps gradients of zeros"
    size = max((int(one["kept_bytes"] or 0) for one in keeping), default=0)
    if size:
        calls = sum(one["calls"] for one in keeping)
        measured = Measurement("gradients-after-zero-grad", size, "bytes", n=calls)
        reason = f"{amount(size, 'bytes')} of gradients were kept as zeros by {counted(calls, 'call')}"
        yield judgement(run, "gradients-kept-as-zeros", claim, Verdict.VERIFIED, reason, (place.site,), measured)
    elif not keeping and any(one["explicit"] for one in place.records):
        reason = f"set_to_none was true in {counted(place.total('calls'), 'call')}"
        yield judgement(run, "gradients-kept-as-zeros", claim, Verdict.REFUTED, reason, (place.site,))


def _clipping(run: WatchedRun, place: Place) -> Iterable[Judgement]:
    scaled, unscaled, disabled, unclear = (place.total(key) for key in ("scaled", "unscaled", "disabled", "unclear"))
    norms = [norm for one in place.records for norm in one["norms"]]
    measured = Measurement("clipped-norms", statistics.median(norms), n=len(norms)) if norms else None
    calls = counted(place.total("calls"), "call")
    if scaled and not unscaled and not unclear:
        verdict = Verdict.VERIFIED
        reason = f"gradients were still scaled in {scaled} of {calls}{_norm(norms)}"
    elif unscaled and not scaled and not unclear:
        verdict, reason = Verdict.REFUTED, f"gradients were unscaled before each of {calls}"
    elif scaled or unscaled or unclear:
        verdict = Verdict.INCONCLUSIVE
        reason = f"gradients were scaled in {scaled}, unscaled in {unscaled} and either in {unclear} of {calls}"
    elif disabled:
        verdict, reason = (
            Verdict.INCONCLUSIVE,
            "the gradient scaler was not enabled in this run, so nothing was scaled",
        )
    else:
        return
    claim = "gradients are clipped while they are scaled"
    yield judgement(run, "clip-before-unscale", claim, verdict, reason, (place.site,), measured)


def _norm(norms: list[float]) -> str:
    return f", with a norm of {statistics.median(norms):.3g} (median)" if norms else ""


def _scalers(run: WatchedRun) -> Iterable[tuple[Evidence, Mapping[str, Any]]]:
    """The scalers, each with the types that autocast computed in in its process."""
    for evidence, record in parts(run, "gradient_scaling", "scalers"):
        casts = evidence.observations.get("autocasts") or ()
        types = sorted({one["dtype"] for one in casts if one["enabled"]})
        yield evidence, {**record, "types": types}


def _scaler(run: WatchedRun, place: Place) -> Iterable[Judgement]:
    types = sorted({name for one in place.records for name in one["types"]})
    enabled = [one for one in place.records if one["enabled"] and one["scaled"]]
    if not types or not site_of(place.records[0].get("site")):
        return
    asked, taken = sum(one["asked_steps"] for one in enabled), sum(one["taken_steps"] for one in enabled)
    skipped = asked - taken
    measured = Measurement(
        "grad-scale", skipped, "skipped steps", n=asked, detail={"last_scale": [one["last_scale"] for one in enabled]}
    )
    if enabled and types == ["bfloat16"]:
        verdict = Verdict.VERIFIED
        reason = f"an enabled scaler scaled losses of bfloat16, and skipped {skipped} of {counted(asked, 'step')}"
    elif enabled and types == ["float16"]:
        verdict, reason = Verdict.REFUTED, "autocast computed only in float16, which needs the scaler,"
    elif not enabled and "bfloat16" in types and all(one["asked"] is False for one in place.records):
        verdict, reason = Verdict.REFUTED, "the scaler was switched off (enabled=False)"
    elif enabled:
        verdict, reason = Verdict.INCONCLUSIVE, f"autocast computed in {' and '.join(types)}"
    else:
        return
    claim = "a gradient scaler is enabled although autocast computes in bfloat16"
    yield device_bound(
        run, judgement(run, "grad-scaler-with-bfloat16", claim, verdict, reason, (place.site,), measured)
    )
