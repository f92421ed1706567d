"""Whether the set of trained parameters changes between steps."""

from __future__ import annotations

from collections.abc import Iterable

from ldlm_lint.evidence.model import Judgement, Measurement, Verdict
from ldlm_lint.evidence.verdicts.by_place import by_site, counted, distinct, listed, unit
from ldlm_lint.evidence.watched import WatchedRun

_TOGGLED = "the set of parameters that require gradients changes between steps"


def judge(run: WatchedRun) -> Iterable[Judgement]:
    """Judge requires-grad-toggled-per-step; a single change is a schedule and does not count."""
    for site, group in by_site(run.of("parameters")):
        records = [record for _, record in group]
        changes = max(record["changes_of_trainable"] for record in records)
        if changes < 2:
            continue
        names = sorted({name for record in records for name in record["changed"]})
        reason = (
            f"requires_grad changed {counted(changes, 'time')} between steps, of {listed(names)}, {run.scope().words}"
        )
        figure = Measurement(
            "changes of trainable parameters", float(changes), unit(changes, "change"), n=records[0]["steps"]
        )
        places = distinct([site, *(record["construction"] for record in records)])
        yield Judgement(
            "requires-grad-toggled-per-step", _TOGGLED, Verdict.VERIFIED, reason, run.scope(), places, figure
        )
