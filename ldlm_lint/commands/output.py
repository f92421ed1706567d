"""Shared by all subcommands: exit codes, and the lines about paths that could not be checked."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ldlm_lint.arguments import UsageError

if TYPE_CHECKING:
    from ldlm_lint.config import Config, Configured
    from ldlm_lint.model import Problem, Report

PROGRAM = "ldlm-lint"
STDOUT = "-"
OK, FINDINGS, USAGE, FAILURE = 0, 1, 2, 3
INTERRUPTED = 130
MOST_STALE = 10


def fail(code: int, message: str) -> int:
    """Print an error on stderr, each line as a separate one, and return ``code``."""
    for line in message.splitlines() or [""]:
        print(f"{PROGRAM}: error: {line}", file=sys.stderr)
    return code


def exit_code(report: Report, configured: Configured, *, exit_zero: bool = False) -> int:
    """The exit code of a report; ``exit_zero`` forgives findings, and nothing else.

    The fail level of its own file applies to each finding.
    """
    if report.problems:
        return code_of(report.problems)
    if report.files == 0 and report.excluded < report.requested:
        return FAILURE
    if not exit_zero and any(
        finding.weight >= configured.of(finding.span.path).fail_level for finding in report.findings
    ):
        return FINDINGS
    return OK


def code_of(problems: Sequence[Problem]) -> int:
    """The exit code of a query about files, given the problems with some of them."""
    if any(problem.usage for problem in problems):
        return USAGE
    return FAILURE if problems else OK


def print_stale(report: Report, base: Path) -> None:
    """One line on stderr for each of the first known defects that are gone; the summary has their number."""
    from ldlm_lint.report.cells import clean
    from ldlm_lint.report.common import shown_path

    for identity, count in report.stale[:MOST_STALE]:
        path = shown_path(Path(report.root, identity.path).as_posix(), base)
        where = f" in {identity.symbol}" if identity.symbol else ""
        times = f" ({count} times)" if count > 1 else ""
        print(f"note: {clean(f'{path}: {identity.rule}{where}')}{times} is in the baseline but no longer found", file=sys.stderr)
    if len(report.stale) > MOST_STALE:
        print(f"note: and {len(report.stale) - MOST_STALE} more", file=sys.stderr)


def print_evidence(report: Report, base: Path) -> None:
    """One line on stderr for each file that has changed since a probe saw it, and for evidence that could not be
    judged."""
    from ldlm_lint.report.cells import clean
    from ldlm_lint.report.common import shown_path

    if report.evidence is None:
        return
    changed = Counter(one.path for one in report.evidence.stale)
    for path, count in sorted(changed.items()):
        rules = ", ".join(sorted({one.rule for one in report.evidence.stale if one.path == path}))
        shown = clean(shown_path(path, base))
        verdicts = f"{count} verdict{'s' if count > 1 else ''}"
        print(f"note: {shown} has changed since the probe ran: {verdicts} left out ({rules})", file=sys.stderr)
    for note in report.evidence.notes:
        print(f"note: {clean(note)}", file=sys.stderr)


def print_bare_noqa(report: Report) -> None:
    """One line on stderr where findings are on lines with a bare ``# noqa``, which silences nothing here."""
    from ldlm_lint.report.common import source_of
    from ldlm_lint.suppress import BARE_NOQA, NOQA_MARKS

    codes = []
    for finding in report.findings:
        source = source_of(report, finding.span.path)
        if source is None or not any(mark in source.data for mark in NOQA_MARKS):
            continue
        line, _ = source.position(finding.span.start)
        if BARE_NOQA.search(source.lines[line - 1]):
            codes.append(finding.code)
    if codes:
        count = "1 finding is on a line" if len(codes) == 1 else f"{len(codes)} findings are on lines"
        advice = f"# noqa: {', '.join(sorted(set(codes)))}"
        print(f"note: {count} with a bare `# noqa`, which does not silence ldlm-lint: write `{advice}`", file=sys.stderr)


def print_problems(report: Report, base: Path, *, everything: bool = False) -> None:
    """One line on stderr for each path that could not be checked; a problem shown as a finding is not repeated.

    With ``everything`` no findings are shown.
    """
    from ldlm_lint.report.common import unsaid

    print_lines_of(report.problems if everything else unsaid(report), base)


def print_lines_of(problems: Iterable[Problem], base: Path) -> None:
    """One line on stderr for each problem."""
    from ldlm_lint.report.cells import clean

    for problem in problems:
        print(f"error: {place(problem, base)}{clean(problem.message)}", file=sys.stderr)


def print_notes(notes: tuple[Problem, ...], base: Path) -> None:
    """One line on stderr for each requested thing that was left out."""
    from ldlm_lint.report.cells import clean

    for note in notes:
        print(f"warning: {place(note, base)}{clean(note.message)}", file=sys.stderr)


def print_deprecated(config: Config) -> None:
    """One line on stderr for each deprecated rule that the user names: its replacement."""
    from ldlm_lint.rules import ALL
    from ldlm_lint.select import deprecated

    for rule in deprecated(ALL, config.layers):
        print(f"warning: {rule.symbol} is deprecated and will be removed: {rule.successor}", file=sys.stderr)


def write_document(place: str, text: str, option: str = "--json") -> None:
    """Write a report to the target of an option: stdout for ``-``, else a file; raises UsageError if that fails.

    A name that is not UTF-8 is in the text as lone surrogates; they become escapes, which JSON allows.
    """
    data = text.encode("utf-8", "backslashreplace")
    if place == STDOUT:
        sys.stdout.write(data.decode("utf-8"))
        return
    try:
        write_file(place, data)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise UsageError(f"{option} {place}: {error.strerror or error}") from error


def check_page(json_place: str | None, html_place: str | None, inputs: Iterable[str | Path] = ()) -> None:
    """Raise UsageError if ``--html`` cannot be written or is an input, or if it and ``--json`` both go to stdout."""
    if html_place == STDOUT == json_place:
        raise UsageError("--json - and --html - cannot share stdout")
    if html_place and html_place != STDOUT:
        check_writable("--html", html_place, inputs)


def check_writable(option: str, place: str, inputs: Iterable[str | Path] = ()) -> None:
    """Raise UsageError where a file that an option names cannot be created, or is one of the ``inputs``.

    Better before a long run than after it.
    """
    path = Path(place)
    if path.is_dir():
        raise UsageError(f"{option} {place}: is a directory")
    if any(_is_same(path, each) for each in inputs):
        raise UsageError(f"{option} {place}: the report would overwrite an input")
    if not path.parent.is_dir():
        raise UsageError(f"{option} {place}: there is no directory {path.parent}")


def _is_same(path: Path, other: str | Path) -> bool:
    try:
        return path.samefile(other)
    except OSError:  # one of them does not exist
        return False


def write_file(place: str, data: bytes) -> None:
    """Put a document into a file in one step, so that no reader sees half of it; raises OSError.

    An existing file keeps its mode, a link stays a link, and special files such as ``/dev/stderr`` or a named pipe are
    written directly.
    """
    # Uses the name itself: the target of /dev/stdout has no path.
    if os.path.exists(place) and not os.path.isfile(place):
        with open(place, "wb") as stream:
            stream.write(data)
        return
    path = Path(os.path.realpath(place))
    import secrets
    import stat

    from ldlm_lint.files import disk

    temporary = path.with_name(f".ldlm-lint-{secrets.token_hex(8)}.tmp")
    try:
        disk.create(temporary, data, 0o666)
        if path.exists():
            os.chmod(temporary, stat.S_IMODE(path.stat().st_mode))
        os.replace(temporary, path)
    finally:
        disk.remove(temporary)


def place(problem: Problem, base: Path) -> str:
    """The place of a problem as the beginning of a line; empty if it is not about a file."""
    from ldlm_lint.report.cells import clean
    from ldlm_lint.report.common import shown_path

    if not problem.path:
        return ""
    path = clean(shown_path(problem.path, base))
    # A problem of a whole file is at its first line.
    return f"{path}:{problem.line}: " if problem.line > (not problem.usage) else f"{path}: "
