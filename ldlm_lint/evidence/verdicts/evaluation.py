"""Evaluation that records unused gradients."""

from __future__ import annotations

from collections.abc import Iterable

from ldlm_lint.evidence.model import Judgement, Measurement, Verdict
from ldlm_lint.evidence.verdicts.by_place import counted
from ldlm_lint.evidence.verdicts.grouping import judgement, places
from ldlm_lint.evidence.watched import WatchedRun

RULE, CLAIM = "evaluation-with-gradients", "a forward pass of evaluation records gradients"


def judge(run: WatchedRun) -> Iterable[Judgement]:
    """The judgements about each place that calls the trained model in evaluation mode, with no backward pass after."""
    for place in places(run.of("evaluation")):
        if not any(one["trained"] for one in place.records) or place.total("learning"):
            continue
        calls, recording = place.total("calls"), place.total("recording")
        name = place.records[0]["module"]
        if recording == calls:
            verdict, what = Verdict.VERIFIED, "recorded gradients, and no backward pass followed"
        elif not recording:
            verdict, what = Verdict.REFUTED, "ran without recording gradients"
        else:
            verdict, what = Verdict.INCONCLUSIVE, f"recorded gradients in {recording} of them"
        reason = f"{counted(calls, 'forward pass', 'forward passes')} of {name} in evaluation mode {what}"
        measured = Measurement("evaluation-gradients", recording, "forward passes", n=calls)
        yield judgement(run, RULE, CLAIM, verdict, reason, (place.site,), measured)
