"""The order of findings, and how they are grouped."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from ldlm_lint.report.consequences import gravity

if TYPE_CHECKING:
    from ldlm_lint.model import Finding, Rule

    Key = Callable[[Finding, Rule], tuple[object, ...]]

CONSEQUENCE, PATH = "consequence", "path"
RULE, FILE, NONE = "rule", "file", "none"
GROUPS = (RULE, FILE, NONE)
_DOUBTS = {"verified": 0, "refuted": 2}
_UNSETTLED = 1


class Group(NamedTuple):
    """Findings that are shown as one block, the one to show in full first."""

    first: Finding
    others: tuple[Finding, ...]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All of them."""
        return (self.first, *self.others)


def ordered(findings: Iterable[Finding], rules: Mapping[str, Rule], order: str) -> list[Finding]:
    """The findings in one of the orders of `ORDERS`; ``rules`` are by symbol."""
    key = ORDERS[order]
    return sorted(findings, key=lambda finding: key(finding, rules[finding.rule]))


def grouped(findings: Iterable[Finding], by: str) -> list[Group]:
    """The findings in groups of ``RULE``, ``FILE`` or ``NONE``; groups and their findings keep the order given."""
    groups: dict[object, list[Finding]] = {}
    for number, finding in enumerate(findings):
        key = {RULE: finding.rule, FILE: finding.span.path, NONE: number}[by]
        groups.setdefault(key, []).append(finding)
    return [Group(first, tuple(others)) for first, *others in groups.values()]


def _doubt(finding: Finding) -> int:
    """How far evidence is from having shown the defect: verified, not settled, refuted."""
    return _UNSETTLED if finding.evidence is None else _DOUBTS.get(finding.evidence.verdict.value, _UNSETTLED)


def _by_consequence(finding: Finding, rule: Rule) -> tuple[object, ...]:
    """The sort key: worst first, then most frequent, then surest; findings at level info after those, refuted ones last."""
    doubt = _doubt(finding)
    certainty = (doubt, -finding.confidence, -finding.severity)
    return (doubt > _UNSETTLED, *gravity(finding, rule), -rule.frequency, *certainty, *finding.order)


def _by_severity(finding: Finding, rule: Rule) -> tuple[object, ...]:
    return (-finding.severity, *_by_consequence(finding, rule))


def _by_rule(finding: Finding, _rule: Rule) -> tuple[object, ...]:
    return (finding.rule, *finding.order)


def _by_path(finding: Finding, _rule: Rule) -> tuple[object, ...]:
    return finding.order


ORDERS: Mapping[str, Key] = {
    CONSEQUENCE: _by_consequence,
    "severity": _by_severity,
    RULE: _by_rule,
    PATH: _by_path,
}
"""The orders that ``--sort`` names: what a finding is sorted by."""
