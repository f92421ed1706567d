"""The effect of a verdict on a finding: its confidence, the level of its fix, and findings that only a probe saw."""

from __future__ import annotations

from ldlm_lint.evidence.model import Judgement, Verdict
from ldlm_lint.evidence.support import Support
from ldlm_lint.model import SEEN, Applicability, Confidence, Finding, Fix, Rule, Span

REFUTED = "refuted by the probe"
LIFTED = "a probe run allows it"


def with_support(finding: Finding, support: Support) -> Finding:
    """The finding with its evidence: an observed defect gets high confidence, a refuted one low confidence and no
    fix.
    """
    if support.was_seen:
        lifting = support.lifting
        fix = lifted(finding.fix, lifting) if finding.fix is not None and lifting is not None else finding.fix
        return finding._replace(confidence=Confidence.HIGH, fix=fix, evidence=support)
    if support.verdict is Verdict.REFUTED:
        fix = withdrawn(finding.fix, support.reason) if finding.fix is not None else None
        return finding._replace(confidence=Confidence.LOW, fix=fix, evidence=support)
    return finding._replace(evidence=support)


def lifted(fix: Fix, judgement: Judgement) -> Fix:
    """A fix that was only shown becomes an unsafe one, with the scope of the evidence in its reason.

    Never more: a case that was not seen in these steps may occur later, so no run makes a fix safe.
    """
    if fix.applicability is not Applicability.DISPLAY or not fix.edits:
        return fix
    reason = f"{LIFTED}: {judgement.reason}" + (f"; {fix.reason}" if fix.reason else "")
    return fix._replace(applicability=Applicability.UNSAFE, reason=reason)


def withdrawn(fix: Fix, reason: str) -> Fix:
    """A fix that is only shown, since the defect was refuted.

    It leaves the group that it shares with other findings, unless a partial fix would be dangerous: then the whole
    group is only shown.
    """
    said = f"{REFUTED}: {reason}"
    group = fix.group if fix.whole else ""
    return fix._replace(applicability=Applicability.DISPLAY, reason=said, group=group)


def own_finding(rule: Rule, span: Span, support: Support) -> Finding:
    """A defect verified at a place without a finding of the linter: its message is the claim, and it has no fix."""
    claim = support.judgements[0].claim
    return Finding(rule.symbol, rule.code, span, ((SEEN, claim),), Confidence.HIGH, evidence=support)
