"""What all subcommands share: exit codes, and the lines that say what kept a path from being checked."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from ldlm_lint.arguments import UsageError

if TYPE_CHECKING:
    from ldlm_lint.model import Problem, Report, Severity

PROGRAM = "ldlm-lint"
OK, FINDINGS, USAGE, FAILURE = 0, 1, 2, 3
INTERRUPTED, PIPE_CLOSED = 130, 141
MOST_STALE = 10


def fail(code: int, message: str) -> int:
    """Print an error as one line on stderr and return ``code``."""
    print(f"{PROGRAM}: error: {message}", file=sys.stderr)
    return code


def exit_code(report: Report, fail_level: Severity, *, exit_zero: bool = False) -> int:
    """The exit code that a report stands for; ``exit_zero`` forgives findings, and nothing else."""
    if report.problems or (report.files == 0 and report.excluded < report.requested):
        return FAILURE
    if not exit_zero and any(finding.weight >= fail_level for finding in report.findings):
        return FINDINGS
    return OK


def print_stale(report: Report, base: Path) -> None:
    """One line on stderr for each of the first known defects that are gone; the footer says how many there are."""
    from ldlm_lint.report.cells import clean
    from ldlm_lint.report.common import shown_path

    for identity, count in report.stale[:MOST_STALE]:
        path = shown_path(Path(report.root, identity.path).as_posix(), base)
        where = f" in {identity.symbol}" if identity.symbol else ""
        times = f" ({count} times)" if count > 1 else ""
        print(f"note: {clean(f'{path}: {identity.rule}{where}')}{times} is in the baseline, but gone", file=sys.stderr)
    if len(report.stale) > MOST_STALE:
        print(f"note: and {len(report.stale) - MOST_STALE} more", file=sys.stderr)


def print_evidence(report: Report, base: Path) -> None:
    """One line on stderr for each file that has changed since a probe saw it, and for what could not be judged."""
    from ldlm_lint.report.cells import clean
    from ldlm_lint.report.common import shown_path

    if report.evidence is None:
        return
    changed = Counter(one.path for one in report.evidence.stale)
    for path, count in sorted(changed.items()):
        rules = ", ".join(sorted({one.rule for one in report.evidence.stale if one.path == path}))
        shown = clean(shown_path(path, base))
        verdicts = f"{count} verdict{'s' if count > 1 else ''}"
        print(f"note: {shown} has changed since the probe saw it: {verdicts} left out ({rules})", file=sys.stderr)
    for note in report.evidence.notes:
        print(f"note: {clean(note)}", file=sys.stderr)


def print_problems(report: Report, base: Path, *, everything: bool = False) -> None:
    """One line on stderr for each path that could not be checked; what is shown as a finding is not said twice.

    With ``everything`` no findings are shown.
    """
    from ldlm_lint.rules.linter import INTERNAL_ERROR, UNREADABLE_FILE

    shown = {(finding.span.path, finding.rule) for finding in report.findings if not everything}
    for problem in report.problems:
        if any((problem.path, rule.symbol) in shown for rule in (UNREADABLE_FILE, INTERNAL_ERROR)):
            continue
        print(f"error: {place(problem, base)}{problem.message}", file=sys.stderr)


def print_notes(notes: tuple[Problem, ...], base: Path) -> None:
    """One line on stderr for each thing that was left out of what was asked for."""
    for note in notes:
        print(f"warning: {place(note, base)}{note.message}", file=sys.stderr)


def write_document(place: str, text: str) -> None:
    """Write a report where ``--json`` says: to stdout for ``-``, else to a file; raises UsageError where it cannot be."""
    if place == "-":
        sys.stdout.write(text)
        return
    try:
        Path(place).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--json {place}: {error.strerror or error}") from error


def place(problem: Problem, base: Path) -> str:
    """The place of a problem as the beginning of a line; empty where it is about no file."""
    from ldlm_lint.report.cells import clean
    from ldlm_lint.report.common import shown_path

    if not problem.path:
        return ""
    path = clean(shown_path(problem.path, base))
    return f"{path}:{problem.line}: " if problem.line > 1 else f"{path}: "
