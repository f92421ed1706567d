"""How many findings each rule has, and how many of them a flag would fix."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from ldlm_lint.model import Applicability, Finding
from ldlm_lint.report.common import fixable
from ldlm_lint.report.view import View


class RuleCount(NamedTuple):
    """The findings of one rule, and how many of them have a fix of each level."""

    rule: str
    code: str
    findings: int
    safe: int
    unsafe: int


def by_rule(findings: Iterable[Finding]) -> list[RuleCount]:
    """The counts of all rules with findings, the most frequent first."""
    groups: dict[tuple[str, str], list[Finding]] = defaultdict(list)
    for finding in findings:
        groups[finding.rule, finding.code].append(finding)
    counts = [
        RuleCount(rule, code, len(group), fixable(group, Applicability.SAFE), fixable(group, Applicability.UNSAFE))
        for (rule, code), group in groups.items()
    ]
    return sorted(counts, key=lambda one: (-one.findings, one.code))


def table(view: View) -> str:
    """One line for each rule: how many findings, their consequence, the code, whether flags fix them, and the name."""
    counts = by_rule(view.shown)
    width = max((len(str(one.findings)) for one in counts), default=0)
    words = [view.rules[one.rule].consequence.value for one in counts]
    widest = max(map(len, words), default=0)
    return "".join(
        f"{one.findings:>{width}}  {word:<{widest}}  {one.code}  {_mark(one, view.unsafe)}  {one.rule}\n"
        for one, word in zip(counts, words, strict=True)
    )


def mark(fixed: int, findings: int) -> str:
    """Whether the current flags fix all of some findings, some of them, or none."""
    return "[*]" if fixed == findings else "[-]" if fixed else "   "


def _mark(one: RuleCount, unsafe: bool) -> str:
    return mark(one.safe + (one.unsafe if unsafe else 0), one.findings)
