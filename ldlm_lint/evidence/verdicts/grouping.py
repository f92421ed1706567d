"""Observations of the same place, of all ranks and together."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ldlm_lint.evidence.model import Evidence, Judgement, Measurement, Site, Verdict, site_of
from ldlm_lint.evidence.watched import ACCELERATORS, WatchedRun, device_bound

Found = Iterable[tuple[Evidence, Mapping[str, Any]]]


@dataclass(frozen=True, slots=True)
class Place:
    """What was observed at one place, in the order of ranks."""

    site: Site
    records: tuple[Mapping[str, Any], ...]

    def total(self, key: str) -> int:
        """The sum of a count."""
        return sum(int(one.get(key) or 0) for one in self.records)

    def most(self, key: str) -> int:
        """The largest of a count."""
        return max((int(one.get(key) or 0) for one in self.records), default=0)

    def values(self, key: str) -> list[Any]:
        """The different values of a key, in the order they were met."""
        found: list[Any] = []
        for one in self.records:
            if one.get(key) not in found:
                found.append(one.get(key))
        return found


def places(found: Found, key: str = "site") -> list[Place]:
    """The observations by place; those without one are left out, for nobody could look at them."""
    grouped: dict[tuple[str, int, int], tuple[Site, list[Mapping[str, Any]]]] = {}
    for _, record in found:
        site = site_of(record.get(key))
        if site is not None:
            grouped.setdefault((site.path, site.line, site.end_line), (site, []))[1].append(record)
    return [Place(site, tuple(records)) for site, records in grouped.values()]


def parts(run: WatchedRun, topic: str, part: str) -> Found:
    """The records of a list inside a topic's mapping, with the process that made them."""
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
    """A judgement over all ranks; the reason ends with the scope in words."""
    scope = run.scope()
    return Judgement(
        rule, claim, verdict, f"{reason} {scope.words}", scope, tuple(one for one in sites if one), measured
    )


def on_accelerators(run: WatchedRun, made: Judgement) -> Judgement:
    """The judgement, inconclusive unless the run was on the accelerator: what it is about does not exist on a CPU."""
    if run.device in ACCELERATORS:
        return device_bound(run, made)
    reason = f"observed on {run.device}, where it has no effect; {made.reason}"
    return dataclasses.replace(made, verdict=Verdict.INCONCLUSIVE, reason=reason)


def count(number: int, what: str) -> str:
    """``1 call``, ``2 calls``, ``3 passes``."""
    plural = "es" if what.endswith("s") else "s"
    return f"{number} {what}{'' if number == 1 else plural}"
