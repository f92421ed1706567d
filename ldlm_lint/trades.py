"""Fixes that trade one thing for another, such as speed for memory: they are applied only if the user agrees to the
trade."""

from __future__ import annotations

from collections.abc import Iterable

from ldlm_lint.config import Configured
from ldlm_lint.model import Finding
from ldlm_lint.rules import ALL, by_symbol
from ldlm_lint.select import by_name


def with_trades(findings: Iterable[Finding], configured: Configured) -> list[Finding]:
    """The findings, with `Fix.trade` where the rule's fix is a trade and the file's configuration does not name the rule itself."""
    return [_traded(finding, configured) if by_symbol[finding.rule].trade else finding for finding in findings]


def _traded(finding: Finding, configured: Configured) -> Finding:
    if finding.fix is None or finding.rule in by_name(ALL, configured.of(finding.span.path).layers):
        return finding
    return finding._replace(fix=finding.fix._replace(trade=by_symbol[finding.rule].trade))


def agreed(finding: Finding) -> Finding:
    """The finding whose fix needs no further agreement: the user has seen it and agreed."""
    return finding if finding.fix is None else finding._replace(fix=finding.fix._replace(trade=""))
