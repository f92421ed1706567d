"""Observations of the same place, of all ranks and together."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ldlm_lint.evidence.model import Evidence, Judgement, Measurement, Site, Verdict
from ldlm_lint.evidence.settling import DEVICE
from ldlm_lint.evidence.verdicts.by_place import by_site
from ldlm_lint.evidence.watched import ACCELERATORS, OBSERVED_ON, WatchedRun, device_bound

Found = Iterable[tuple[Evidence, Mapping[str, Any]]]


@dataclass(frozen=True, slots=True)
class Place:
    """The observations at one place, in the order of ranks."""

    site: Site
    records: tuple[Mapping[str, Any], ...]

    def total(self, key: str) -> int:
        """The sum of a count."""
        return sum(int(one.get(key) or 0) for one in self.records)

    def most(self, key: str) -> int:
        """The largest of a count."""
        return max((int(one.get(key) or 0) for one in self.records), default=0)


def places(found: Found, key: str = "site") -> list[Place]:
    """The observations by place; those without a place are left out, since a reader could not find them."""
    return [Place(site, tuple(record for _, record in group)) for site, group in by_site(found, key)]


def parts(run: WatchedRun, topic: str, part: str) -> Found:
    """The records of a list inside a topic's mapping, with their processes."""
    for evidence, values in run.of(topic):
        for record in values.get(part) or ():
            yield evidence, record


def judgement(
    run: WatchedRun,
    rule: str,
    claim: str,
    verdict: Verdict,
    reason: str,
    sites: Sequence[Site | None],
    measured: Measurement | None = None,
) -> Judgement:
    """A judgement over all ranks; the reason ends with the scope."""
    scope = run.scope()
    return Judgement(
        rule, claim, verdict, f"{reason} {scope.words}", scope, tuple(one for one in sites if one), measured
    )


def on_accelerators(run: WatchedRun, made: Judgement) -> Judgement:
    """The judgement, inconclusive unless the run was on the accelerator: its subject does not exist on a CPU."""
    if run.device in ACCELERATORS:
        return device_bound(run, made)
    reason = f"{OBSERVED_ON}{run.device}, where it has no effect; {made.reason}"
    return dataclasses.replace(made, verdict=Verdict.INCONCLUSIVE, reason=reason, settled_by=DEVICE)
