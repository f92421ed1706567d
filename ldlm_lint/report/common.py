"""What all formats share: shown paths, positions and counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from ldlm_lint.model import Applicability, Finding, Fix, KnownLaunch, Problem, Report, Rule, Severity, Span
from ldlm_lint.processors import gpus
from ldlm_lint.source import Source

if TYPE_CHECKING:
    from typing import TypeGuard

HOME = "https://github.com/ldlm-lint/ldlm-lint"
DOCS = f"{HOME}/blob/main/docs/rules"


def rule_url(symbol: str) -> str:
    """The page of a rule in the documentation."""
    return f"{DOCS}/{symbol}.md"


def shown_path(path: str, base: Path) -> str:
    """A path (absolute) relative to ``base`` with forward slashes, absolute if it is outside."""
    pure = PurePath(path)
    return pure.relative_to(base).as_posix() if pure.is_relative_to(base) else pure.as_posix()


def source_of(report: Report, path: str) -> Source | None:
    """The text of a file, if the report has it."""
    source = report.sources.get(path)
    return source if isinstance(source, Source) else None


def edited_sources(report: Report, fix: Fix) -> dict[str, Source] | None:
    """The files that a fix edits, by path; None if the report does not have all of them."""
    paths = {edit.span.path for edit in fix.edits}
    found = {path: source for path in paths if (source := source_of(report, path)) is not None}
    return found if len(found) == len(paths) else None


def positions(report: Report, span: Span) -> tuple[tuple[int, int], tuple[int, int]]:
    """The 1-based line and column (characters) of a span's start and end; the end is the place after it.

    In a notebook lines are those of the cell. For an unreadable file the position is its first character.
    """
    source = source_of(report, span.path)
    if source is None:
        return (1, 1), (1, 1)
    return source.shown(span.start), source.shown(span.end)


def severities(findings: Iterable[Finding]) -> dict[Severity, int]:
    """How many findings each severity has, the gravest first, zeros included."""
    counts = Counter(finding.severity for finding in findings)
    return {severity: counts[severity] for severity in sorted(Severity, reverse=True)}


def fixable(findings: Iterable[Finding], applicability: Applicability) -> int:
    """The number of findings whose fix has exactly this level, edits something, and is applied by a run of all
    fixes.
    """
    return sum(
        1
        for one in findings
        if has_edits(one.fix) and one.fix.applicability is applicability and one.fix.reaches(applicability)
    )


def trades(findings: Iterable[Finding]) -> Counter[str]:
    """How many findings have a fix that needs the user's agreement to a trade, by the trade."""
    return Counter(one.fix.trade for one in findings if has_edits(one.fix) and one.fix.trade)


def has_edits(fix: Fix | None) -> TypeGuard[Fix]:
    """Whether a fix changes a file at all; one without edits is advice as text."""
    return fix is not None and bool(fix.edits)


def is_open(finding: Finding) -> bool:
    """Whether a probe could still confirm or refute a finding."""
    return finding.evidence is None or finding.evidence.verdict.value == "inconclusive"


def settling(report: Report, finding: Finding, rule: Rule, base: Path) -> str | None:
    """The command that would confirm or refute a finding, None if no probe observes its rule.

    It starts the script that launches the program only if that fits this machine, and otherwise one process.
    """
    if rule.probe is None:
        return None
    launch = report.launches.get(finding.span.path)
    if launch is None:
        return rule.probe.command()
    import shlex

    if _fits_here(launch):
        return rule.probe.command(f"bash {shlex.quote(shown_path(launch.script, base))}")
    words = (launch.launcher, shlex.quote(shown_path(launch.entry, base)), launch.arguments)
    return rule.probe.command(" ".join(filter(None, words)))


def _fits_here(launch: KnownLaunch) -> bool:
    """Whether this machine has a GPU for each process that a script starts; for an unknown number one must be there."""
    return launch.processes == 1 or not launch.entry or gpus() >= (launch.processes or 1)


def verdicts(report: Report) -> dict[str, int]:
    """How many findings of a report each verdict has, and how many judgements were left out as stale."""
    counts = Counter(one.evidence.verdict.value for one in report.findings if one.evidence is not None)
    stale = len(report.evidence.stale) if report.evidence is not None else 0
    return {**{word: counts[word] for word in ("verified", "refuted", "inconclusive")}, "stale": stale}


def unsaid(report: Report) -> list[Problem]:
    """The problems of a report that no finding reports already."""
    from ldlm_lint.rules.linter import INTERNAL_ERROR, UNREADABLE_FILE

    grave = (UNREADABLE_FILE.symbol, INTERNAL_ERROR.symbol)
    said = {finding.span.path for finding in report.findings if finding.rule in grave}
    return [problem for problem in report.problems if problem.path not in said]
