"""Verdicts of the probe as JSON ``ldlm-verdicts/1`` (docs/verdicts.schema.json)."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from ldlm_lint.evidence.model import Evidence, Judgement, plain
from ldlm_lint.report.verdicts import ORDER, ordered

SCHEMA = "ldlm-verdicts/1"


def render(judgements: Iterable[Judgement], *, evidence: Sequence[Evidence] = (), notes: Sequence[str] = ()) -> str:
    """One JSON document, ASCII only; ``evidence`` are the files behind the judgements."""
    return json.dumps(document(judgements, evidence=evidence, notes=notes), indent=2, allow_nan=False) + "\n"


def document(
    judgements: Iterable[Judgement], *, evidence: Sequence[Evidence] = (), notes: Sequence[str] = ()
) -> dict[str, Any]:
    """The document as plain values; a number that is not finite has no place in JSON and becomes null."""
    found = ordered(judgements)
    counts = Counter(one.verdict for one in found)
    return {
        "schema": SCHEMA,
        "verdicts": [finite(plain(one)) for one in found],
        "runs": [_run(one) for one in evidence],
        "notes": list(notes),
        "summary": {verdict.value: counts[verdict] for verdict in ORDER},
    }


def finite(value: Any) -> Any:
    """Plain values with null for NaN and infinities."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: finite(one) for key, one in value.items()}
    return [finite(one) for one in value] if isinstance(value, list) else value


def _run(evidence: Evidence) -> dict[str, Any]:
    """The process behind a file: how it ended, its device, and the probe's cost."""
    return finite(
        {
            **plain(evidence.run),
            "environment": plain(evidence.environment),
            "unavailable": dict(evidence.unavailable),
            "overhead_seconds": evidence.overhead_seconds,
        }
    )
