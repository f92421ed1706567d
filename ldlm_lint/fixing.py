"""Fixing: lint, apply fixes in memory to a fixed point, and either write the result or show it as a patch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ldlm_lint import engine
from ldlm_lint.autofix.apply import FixResult, fix_files
from ldlm_lint.autofix.diff import patch_base, unified_diff
from ldlm_lint.autofix.write import WriteError, write_atomically
from ldlm_lint.config import Config, project_root
from ldlm_lint.discover import discover
from ldlm_lint.model import Applicability, Problem, Report
from ldlm_lint.source import Source, UnreadableError


@dataclass(frozen=True, slots=True)
class Outcome:
    """What fixing did, or would do.

    ``report`` is what remains afterwards, ``applied`` the number of fixed findings, ``files`` the changed files
    (absolute, forward slashes), ``diff`` the change as one patch that ``git apply`` takes from the base directory.
    ``notes`` are fixes that were left out, with the reason; what could not be written is in the report's problems.
    """

    report: Report
    applied: int
    files: tuple[str, ...]
    diff: bytes
    notes: tuple[Problem, ...]


def apply_fixes(paths: Sequence[Path], config: Config, base: Path, limit: Applicability, write: bool) -> Outcome:
    """Apply all fixes of at least ``limit`` below ``paths``; to disk with ``write``, else only in memory."""
    before = engine.run(paths, config, base=base)
    contents = _contents(paths, config, base)
    result = fix_files(lambda overlay: engine.run(paths, config, base=base, overlay=overlay).findings, contents, limit)
    problems = _write(contents, result.changed) if write else ()
    failed = {problem.path for problem in problems}
    changed = {path: data for path, data in result.changed.items() if path not in failed}
    remaining = engine.run(paths, config, base=base, overlay=changed)
    report = _with_problems(remaining, problems)
    return Outcome(
        report,
        sum(result.applied.values()) if not failed else max(len(before.findings) - len(report.findings), 0),
        tuple(sorted(changed)),
        unified_diff(patch_base(base), contents, changed),
        _notes(result),
    )


def _contents(paths: Sequence[Path], config: Config, base: Path) -> dict[str, bytes]:
    """The bytes of all files that a fix may change: those that are linted, since a later round may reach any of them."""
    contents = {}
    for path, kind in discover(paths, config, Path(config.root) if config.root else base).files:
        try:
            contents[path.as_posix()] = Source.read(path, kind).data
        except UnreadableError:
            # The lint of this file reports it; there is nothing to fix in it.
            continue
    return contents


def _write(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> tuple[Problem, ...]:
    problems = []
    for path in sorted(after):
        try:
            write_atomically(Path(path), before[path], after[path], root=project_root(Path(path)))
        except WriteError as error:
            problems.append(Problem(path, 1, f"not fixed: {error}"))
    return tuple(problems)


def _with_problems(report: Report, problems: Sequence[Problem]) -> Report:
    return replace(report, problems=(*report.problems, *problems))


def _notes(result: FixResult) -> tuple[Problem, ...]:
    left_out = [
        Problem(one.path, 1, f"fix of {', '.join(one.rules)} left out, since {one.reason}") for one in result.rejected
    ]
    if not result.converged:
        names = ", ".join(result.unsettled)
        left_out.append(Problem("", 1, f"fixes did not settle, please report this ({names})"))
    return tuple(left_out)
