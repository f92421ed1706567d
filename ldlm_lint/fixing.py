"""Lint and rewrite: applies fixes in memory until nothing changes, then writes them or shows a patch; writes ignore
comments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ldlm_lint import engine
from ldlm_lint.add_ignores import add_ignores
from ldlm_lint.autofix.apply import Applied, FixResult, fix_files
from ldlm_lint.autofix.diff import patch_base, unified_diff
from ldlm_lint.autofix.journal import JournalError
from ldlm_lint.autofix.undo import journal_for
from ldlm_lint.config import Configured
from ldlm_lint.discover import discover
from ldlm_lint.gate import EVERYTHING, Gate
from ldlm_lint.model import Applicability, Edit, Finding, Problem, Report
from ldlm_lint.notebooks.document import NotebookError
from ldlm_lint.notebooks.rewrite import as_stored
from ldlm_lint.rules import by_symbol
from ldlm_lint.source import Source, UnreadableError
from ldlm_lint.writing import NOT_FIXED, blocked, finish_interrupted, write_changed

if TYPE_CHECKING:
    from ldlm_lint.evidence.dossier import Dossier


Lint = Callable[..., Report]
"""What is called as `ldlm_lint.engine.run` is."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What fixing did, or would do.

    ``report`` has the remaining findings, ``applied`` the number of fixed findings, ``files`` the changed files
    (absolute, forward slashes), ``diff`` the change as one patch that ``git apply`` takes from the base directory.
    ``notes`` are fixes that were left out, with the reason; write errors are in the report's problems. ``by_rule`` is
    ``applied`` by rule symbol, for all planned changes, ``places`` are the fixed findings; ``rounds`` is how many
    rounds it took. ``found`` is how many findings there were before, None if they were not counted.
    """

    report: Report
    applied: int
    files: tuple[str, ...]
    diff: bytes
    notes: tuple[Problem, ...]
    by_rule: Mapping[str, int] = field(default_factory=dict)
    rounds: int = 0
    places: tuple[Applied, ...] = ()
    found: int | None = None


def apply_fixes(
    paths: Sequence[Path],
    configured: Configured,
    base: Path,
    limit: Applicability,
    write: bool,
    gate: Gate = EVERYTHING,
    choose: Callable[[Report], Iterable[Finding]] | None = None,
    evidence: Dossier | None = None,
    lint: Lint = engine.run,
    unreached: bool = False,
) -> Outcome:
    """Apply all fixes of at least ``limit`` below ``paths``; to disk with ``write``, else only in memory.

    With ``choose``, which is called in each round, apply the fixes of the findings that it returns, at any level.
    Findings that ``gate`` holds back are neither fixed nor reported. Files are written all or none, and a file that
    cannot be written keeps its fixes, those included that change other files too. ``evidence`` about the current files
    is used for all fixes; for changed files it is stale in the final report. ``lint`` is called as
    `ldlm_lint.engine.run` is, in each round. Code of minor importance (`ldlm_lint.reach`) stays as it is, unless
    ``unreached``.
    """
    journal = journal_for(paths, base)
    try:
        interrupted = finish_interrupted(journal) if write else ()
    except JournalError as error:
        return _nothing(lint(paths, configured, base=base, gate=gate, evidence=evidence), f"{NOT_FIXED}: {error}")
    contents = _contents(paths, configured, base)
    faults = blocked(contents, journal) if write else {}
    known = _Known(evidence.before(contents)) if evidence is not None else None

    def run(overlay: engine.Overlay, evidence: Dossier | None) -> Report:
        after = gate.after(contents, overlay)
        return lint(paths, configured, base=base, overlay=overlay, gate=after, evidence=evidence)

    found: list[int] = []

    def report_of(overlay: engine.Overlay) -> Report:
        report = run(overlay, None) if known is None else known.reported(run(overlay, known.evidence))
        report = replace(report, findings=_shown(report, unreached))
        found.append(len(report.findings))
        return report

    free = {path: data for path, data in contents.items() if path not in faults}
    follow = known.follow if known is not None else lambda _before, _edits: None
    if choose is None:
        result = fix_files(lambda overlay: report_of(overlay).findings, free, limit, applied_to=follow)
        options = ("--fix", *(("--unsafe-fixes",) if limit < Applicability.SAFE else ()))
    else:
        result = fix_files(lambda overlay: choose(report_of(overlay)), free, Applicability.UNSAFE, applied_to=follow)
        options = ("--fix", "--interactive")
    failed = write_changed(journal, contents, result.changed, NOT_FIXED, options, result.applied) if write else ()
    changed = {} if failed else result.changed
    remaining = evidence.without(known.answered) if evidence is not None and known is not None else None
    report = _with_problems(run(changed, remaining), (*_left_out(result, faults), *failed))
    return Outcome(
        report,
        sum(result.applied.values()) if not failed else 0,
        tuple(sorted(changed)),
        unified_diff(patch_base(base), *_stored(contents, changed)),
        (*interrupted, *notes_of(result, faults)),
        result.applied,
        result.rounds,
        result.places if not failed else (),
        found[0],
    )


def _stored(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> tuple[Mapping[str, bytes], Mapping[str, bytes]]:
    """The old contents for a patch: the files on disk, or the linted contents if they differ."""
    try:
        return as_stored(before, after)
    except NotebookError:
        return before, after


@dataclass(slots=True)
class _Known:
    """The evidence of a run of fixes, its places as far as the edits have moved them, and the judgements of the first
    round."""

    evidence: Dossier
    answered: frozenset[int] = frozenset()
    begun: bool = False

    def reported(self, report: Report) -> Report:
        """The report of a round; the first one says which judgements have findings."""
        if not self.begun and report.evidence is not None:
            self.answered, self.begun = report.evidence.answered, True
        return report

    def follow(self, before: Mapping[str, bytes], edits: Iterable[Edit]) -> None:
        """Move the places of evidence with the edits of a round."""
        self.evidence = self.evidence.after(before, edits)


def ignore_all(paths: Sequence[Path], configured: Configured, base: Path, gate: Gate = EVERYTHING, lint: Lint = engine.run, unreached: bool = False) -> Outcome:
    """Write an ignore comment for everything below ``paths`` that would be shown, as ``lint`` reports it and as `apply_fixes` leaves out."""
    failure = "no comment written"
    journal = journal_for(paths, base)
    try:
        interrupted = finish_interrupted(journal)
    except JournalError as error:
        return _nothing(lint(paths, configured, base=base, gate=gate), f"{failure}: {error}")
    before = lint(paths, configured, base=base, gate=gate)
    ignored = add_ignores(_shown(before, unreached), before.sources, by_symbol)
    faults = blocked(ignored.contents, journal)
    contents = {path: before.sources[path].data for path in ignored.contents}
    changed = {path: data for path, data in ignored.contents.items() if path not in faults}
    failed = write_changed(journal, contents, changed, failure, ("--add-ignores",))
    changed = {} if failed else changed
    problems = (*(Problem(path, 1, f"{failure}: {fault}") for path, fault in sorted(faults.items())), *failed)
    after = lint(paths, configured, base=base, overlay=changed, gate=gate.after(contents, changed))
    return Outcome(
        _with_problems(after, problems),
        max(len(before.findings) - len(after.findings), 0),
        tuple(sorted(changed)),
        b"",
        (*interrupted, *ignored.problems),
    )


def _contents(paths: Sequence[Path], configured: Configured, base: Path) -> dict[str, bytes]:
    """The bytes of all files that a fix may change: all linted files, since a later round may change any of them."""
    contents = {}
    for path, kind in discover(paths, configured, Path(configured.run.root or base)).files:
        try:
            contents[path.as_posix()] = Source.read(path, kind).data
        except UnreadableError:
            # The lint of this file reports it; there is nothing to fix in it.
            continue
    return contents


def _shown(report: Report, unreached: bool) -> tuple[Finding, ...]:
    """The findings that a report for people shows one by one: findings that it does not show are not fixed either."""
    return report.findings if unreached else tuple(one for one in report.findings if one.standing is None)


def _with_problems(report: Report, problems: Sequence[Problem]) -> Report:
    return replace(report, problems=(*report.problems, *problems))


def _nothing(report: Report, reason: str) -> Outcome:
    """The outcome of a run that could not begin."""
    return Outcome(_with_problems(report, [Problem("", 1, reason)]), 0, (), b"", ())


def _left_out(result: FixResult, faults: Mapping[str, str]) -> list[Problem]:
    """The files that would have been fixed and cannot be written."""
    paths = {one.path for one in result.rejected if one.path in faults}
    return [Problem(path, 1, f"{NOT_FIXED}: {faults[path]}") for path in sorted(paths)]


def notes_of(result: FixResult, faults: Mapping[str, str]) -> tuple[Problem, ...]:
    """Notes on what was left out: rejected fixes, unwritten files."""
    left_out = [
        Problem(one.path, 1, f"fix of {', '.join(one.rules)} left out: {one.reason}")
        for one in result.rejected
        if one.path not in faults
    ]
    if not result.converged:
        names = ", ".join(result.unsettled)
        left_out.append(Problem("", 1, f"fixes keep changing the files, please report this ({names})"))
    return tuple(left_out)
