"""The closing lines of a report in plain words: what was found, what a flag would fix, and what was held back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ldlm_lint.model import Applicability, Report, Severity
from ldlm_lint.report.cells import clean
from ldlm_lint.report.common import fixable, severities, shown_path, trades, verdicts
from ldlm_lint.report.view import View

FIXABLE = "[*]"
_NAMED = 3


def lines(view: View) -> Iterator[str]:
    """The lines below the findings; the one that begins with `FIXABLE` says what the flags would fix."""
    report, fixed = view.report, view.fixed
    if fixed is not None:
        yield f"{fixed.done} {count(fixed.findings, 'finding')} in {count(fixed.files, 'file')}."
    yield found(report, remaining=fixed is not None)
    hint = fixable_hint(report, view.unsafe)
    if hint:
        yield f"{FIXABLE} {hint}"
    for trade, number in trades(report.findings).items():
        yield f"{count(number, 'fix trades', 'fixes trade')} {trade}: --fix --interactive offers {'it' if number == 1 else 'them'}."
    yield ", ".join(_counts(report)) + "."
    if report.unseen:
        yield f"Not understood: {_places(report.unseen, view.base)}."
    gone = sum(times for _, times in report.stale)
    if gone:
        yield f"{count(gone, 'known finding')} of the baseline gone, see ldlm-lint baseline --update"


def found(report: Report, *, remaining: bool = False) -> str:
    """How many findings there are, by severity; ``remaining`` says that others were fixed."""
    total = len(report.findings)
    if not total:
        return "No findings remain." if remaining else "No findings."
    words = (
        (number, severity.label if severity is Severity.INFO else severity.label + ("s" if number != 1 else ""))
        for severity, number in severities(report.findings).items()
    )
    listed = ", ".join(f"{number} {word}" for number, word in words if number)
    verb = "remain" if total > 1 else "remains"
    return (
        f"{count(total, 'finding')} {verb} ({listed})." if remaining else f"Found {count(total, 'finding')} ({listed})."
    )


def fixable_hint(report: Report, unsafe: bool) -> str:
    """What flags would fix, empty where none would."""
    safe = fixable(report.findings, Applicability.SAFE)
    more = fixable(report.findings, Applicability.UNSAFE)
    if unsafe:
        return f"{safe + more} fixable with --fix --unsafe-fixes." if safe + more else ""
    parts = [f"{safe} fixable with --fix"] if safe else []
    parts += [f"{more} {'more' if safe else 'fixable'} with --fix --unsafe-fixes"] if more else []
    return f"{', '.join(parts)}." if parts else ""


def _counts(report: Report) -> Iterator[str]:
    yield f"{count(report.files, 'file')} read"
    if report.suppressed:
        yield f"{count(report.suppressed, 'finding')} suppressed"
    if report.baselined:
        yield f"{count(report.baselined, 'finding')} known from the baseline"
    if report.unchanged:
        yield f"{count(report.unchanged, 'finding')} on unchanged lines"
    if report.unseen:
        yield f"{count(len(report.unseen), 'stretch', 'stretches')} of scripts and configurations not understood"
    if report.excluded:
        yield f"{count(report.excluded, 'named path')} excluded"
    if report.problems:
        yield count(len(report.problems), "problem")
    if report.evidence is not None:
        settled = {word: number for word, number in verdicts(report).items() if number}
        listed = ", ".join(f"{number} {word}" for word, number in settled.items()) or "no verdict on them"
        yield f"probe: {listed}"


def _places(unseen: Sequence[tuple[str, int]], base: Path) -> str:
    """The first places, and how many more there are."""
    named = ", ".join(f"{clean(shown_path(path, base))}:{line}" for path, line in unseen[:_NAMED])
    return f"{named} and {len(unseen) - _NAMED} more" if len(unseen) > _NAMED else named


def count(number: int, one: str, many: str = "") -> str:
    """A number with its noun.

    >>> count(2, "finding"), count(1, "finding")
    ('2 findings', '1 finding')
    """
    return f"{number} {one if number == 1 else many or one + 's'}"
