"""Attention: hand-written, or one fused call."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ldlm_lint.evidence.model import Judgement, Measurement, Verdict
from ldlm_lint.evidence.verdicts.by_place import counted
from ldlm_lint.evidence.verdicts.grouping import Place, judgement, places
from ldlm_lint.evidence.watched import WatchedRun, device_bound

RULE, CLAIM = "unfused-attention", "attention computes its whole matrix of scores"
# The fused operators of torch on CUDA and on CPUs; the one that ends in _math is not fused.
_FUSED = re.compile(
    r"^aten::(?!.*backward)(_scaled_dot_product_(flash|efficient|cudnn|fused)|_flash_attention_forward|_efficient_attention_forward)"
)
_MATH = "aten::_scaled_dot_product_attention_math"


def judge(run: WatchedRun) -> Iterable[Judgement]:
    """The judgements about each place that attends in training."""
    operators: dict[str, int] = {}
    for _, values in run.of("operations"):
        for name, number in values["aten"].items():
            operators[name] = operators.get(name, 0) + number
    for place in places(run.of("attention")):
        training = [one for one in place.records if one["training_calls"]]
        if any(one["kind"] == "by_hand" for one in training):
            yield _by_hand(run, place)
        elif any(one["kind"] == "fused" for one in training):
            yield from _fused(run, place, operators)


def _by_hand(run: WatchedRun, place: Place) -> Judgement:
    shape = next(one["shape"] for one in place.records if one["kind"] == "by_hand")
    calls = place.total("training_calls")
    reason = (
        f"softmax over a product of shape {'x'.join(map(str, shape))} ran here in {counted(calls, 'training call')}"
    )
    measured = Measurement("attention-kernels", calls, "calls", detail={"shape": shape})
    return device_bound(run, judgement(run, RULE, CLAIM, Verdict.VERIFIED, reason, (place.site,), measured))


def _fused(run: WatchedRun, place: Place, operators: dict[str, int]) -> Iterable[Judgement]:
    fused = {name: number for name, number in operators.items() if _FUSED.search(name)}
    unfused = operators.get(_MATH, 0)
    if fused and not unfused:
        verdict, reason = Verdict.REFUTED, f"{next(iter(fused))} ran"
    elif unfused and not fused:
        verdict, reason = Verdict.VERIFIED, "scaled_dot_product_attention fell back to its math implementation"
    elif fused:
        verdict, reason = Verdict.INCONCLUSIVE, "both fused kernels and the math implementation ran"
    else:
        return
    measured = Measurement("attention-kernels", sum(fused.values()), "kernels", detail=fused)
    yield device_bound(run, judgement(run, RULE, CLAIM, verdict, reason, (place.site,), measured))
