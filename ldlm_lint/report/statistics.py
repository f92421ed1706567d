"""How often each rule speaks, and how much of that a flag would fix."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from ldlm_lint.model import Applicability, Finding
from ldlm_lint.report.common import fixable


class RuleCount(NamedTuple):
    """The findings of one rule, and how many of them have a fix of each level."""

    rule: str
    code: str
    findings: int
    safe: int
    unsafe: int


def by_rule(findings: Iterable[Finding]) -> list[RuleCount]:
    """The counts of all rules that speak, the most frequent first."""
    groups: dict[tuple[str, str], list[Finding]] = defaultdict(list)
    for finding in findings:
        groups[finding.rule, finding.code].append(finding)
    counts = [
        RuleCount(rule, code, len(group), fixable(group, Applicability.SAFE), fixable(group, Applicability.UNSAFE))
        for (rule, code), group in groups.items()
    ]
    return sorted(counts, key=lambda one: (-one.findings, one.code))


def table(findings: Iterable[Finding], *, unsafe: bool) -> str:
    """One line for each rule: how many findings, the code, ``[*]`` where the flags at hand fix some, and the name."""
    counts = by_rule(findings)
    width = max((len(str(one.findings)) for one in counts), default=0)
    return "".join(f"{one.findings:>{width}}  {one.code}  {_mark(one, unsafe)}  {one.rule}\n" for one in counts)


def _mark(one: RuleCount, unsafe: bool) -> str:
    fixed = one.safe + (one.unsafe if unsafe else 0)
    return "[*]" if fixed == one.findings else "[-]" if fixed else "   "
