"""The combined verdict on one finding from all judgements about it."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from ldlm_lint.evidence.model import Judgement, Verdict
from ldlm_lint.evidence.settling import hint
from ldlm_lint.model import Severity


class Level(enum.IntEnum):
    """How closely a judgement matches a finding; of two conclusive ones the closer decides.

    PLACE: a site of the judgement is the finding's place or one it points to. FILE: it is in the same file, and there
    is one finding and one such place. RUN: it was observed of the run, and there is one such finding. MACHINE: an
    experiment with its own model.
    """

    MACHINE = 0
    RUN = 1
    FILE = 2
    PLACE = 3

    @property
    def label(self) -> str:
        """The word used in JSON."""
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Support:
    """The verdict on a finding, its reason as text, and the judgements behind it, the deciding ones first."""

    verdict: Verdict
    reason: str
    level: Level
    judgements: tuple[Judgement, ...]

    @property
    def was_seen(self) -> bool:
        """Whether the defect itself was seen, not only its cost on this machine."""
        return self.verdict is Verdict.VERIFIED and self.level is not Level.MACHINE

    @property
    def words(self) -> str:
        """The verdict and its reason, as a report shows them."""
        if self.level is Level.MACHINE and self.verdict is not Verdict.INCONCLUSIVE:
            return f"{self.verdict.value} on this machine: {self.reason}"
        wrong = " (the linter was wrong here)" if self.verdict is Verdict.REFUTED else ""
        todo = hint(self.judgements[0]) if self.verdict is Verdict.INCONCLUSIVE else ""
        return f"{self.verdict.value}{wrong}: {self.reason}{f'; {todo}' if todo else ''}"

    @property
    def lifting(self) -> Judgement | None:
        """The judgement that makes the fix better by one level: one about exactly this place, and uncontradicted."""
        if self.verdict is not Verdict.VERIFIED or self.level is not Level.PLACE:
            return None
        return next((one for one in self.judgements if one.lifts and one.verdict is Verdict.VERIFIED), None)

    def weight(self, severity: Severity) -> Severity:
        """The severity of a finding for the exit code: at least REFACTOR if it was seen, INFO if refuted."""
        if self.was_seen:
            return max(severity, Severity.REFACTOR)
        return Severity.INFO if self.verdict is Verdict.REFUTED else severity


def weighed(found: Sequence[tuple[Level, Judgement]]) -> Support:
    """One verdict from at least one judgement.

    Conclusive judgements win over inconclusive ones, closer ones over others, and a contradiction at one level is
    inconclusive.
    """
    settled = [level for level, one in found if one.verdict is not Verdict.INCONCLUSIVE]
    level = max(settled or [level for level, _ in found])
    decisive = [one for at, one in found if at == level and (not settled or one.verdict is not Verdict.INCONCLUSIVE)]
    others = [one for at, one in sorted(found, key=lambda pair: -pair[0]) if one not in decisive]
    verdicts = list(dict.fromkeys(one.verdict for one in decisive))
    if len(verdicts) == 1:
        return Support(verdicts[0], _reason(decisive[0], level), level, (*decisive, *others))
    each = (next(one for one in decisive if one.verdict is verdict) for verdict in verdicts)
    reasons = "; ".join(f"{one.verdict.value}: {one.reason}" for one in each)
    return Support(Verdict.INCONCLUSIVE, f"the evidence contradicts itself: {reasons}", level, (*decisive, *others))


def _reason(judgement: Judgement, level: Level) -> str:
    """The reason, with its place if that differs from the finding's."""
    reason = judgement.reason or judgement.claim
    if level in (Level.FILE, Level.RUN) and judgement.sites:
        return f"{reason} (seen at {judgement.sites[0].path}:{judgement.sites[0].line})"
    return reason
