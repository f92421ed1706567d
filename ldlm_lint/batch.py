"""Lints many files: takes cached results over, computes the rest here or in worker processes, and keeps the order."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ldlm_lint.config import Config, Configured
from ldlm_lint.linting import Overlay, idle_rules, lint_file
from ldlm_lint.model import FileResult
from ldlm_lint.rules import linter
from ldlm_lint.source import Kind

if TYPE_CHECKING:
    from ldlm_lint.cache.contract import Cache
    from ldlm_lint.projects import Projects

Progress = Callable[[int, int], object]
"""Told of each file that is done: how many are, of how many."""
_FEW = 100
"""Files that are too few for another process, whatever they hold."""
_PASSING = frozenset({linter.INTERNAL_ERROR.symbol, linter.UNREADABLE_FILE.symbol})
"""What another run may judge otherwise although the file is the same: it had more memory, time or rights."""


def lint_files(
    files: Sequence[tuple[Path, Kind]],
    configured: Configured,
    overlay: Overlay,
    projects: Projects,
    *,
    session: Cache | None = None,
    jobs: int = 1,
    progress: Progress | None = None,
) -> list[FileResult]:
    """The results of files (absolute), in their order; ``jobs`` processes do the work, for 0 as many as are worth
    starting.

    ``configured`` gives the configuration of each file. ``projects`` take the tables of the files out of the results.
    """
    known = dict(_remembered(files, configured, overlay, session))
    missing = [(path, kind) for path, kind in files if path not in known]
    for done, (path, kind, result) in enumerate(_linted(missing, configured, overlay, projects, jobs), start=len(known) + 1):
        known[path] = result._replace(table=None)
        if result.table is not None:
            projects.learn_table(path.as_posix(), result.table)
        if session is not None and path.as_posix() not in overlay and may_be_kept(result):
            session.keep(kind, config_key(configured.of(path.as_posix())), result)
        if progress is not None:
            progress(done, len(files))
    return [known[path] for path, _ in files]


def may_be_kept(result: FileResult) -> bool:
    """Whether a result depends on the file alone and not on the run, so that it can be cached."""
    return all(finding.rule not in _PASSING for finding in result.findings)


@functools.lru_cache
def config_key(config: Config) -> str:
    """The part of the configuration that the result of a file depends on."""
    return repr((config.root, sorted(config.facts.items()), sorted(idle_rules(config))))


def _remembered(
    files: Sequence[tuple[Path, Kind]], configured: Configured, overlay: Overlay, session: Cache | None
) -> Iterator[tuple[Path, FileResult]]:
    if session is None:
        return
    for path, kind in files:
        name = path.as_posix()
        result = session.result(name, kind, config_key(configured.of(name))) if name not in overlay else None
        if result is not None:
            yield path, result


def _linted(
    files: Sequence[tuple[Path, Kind]], configured: Configured, overlay: Mapping[str, bytes], projects: Projects, jobs: int
) -> Iterator[tuple[Path, Kind, FileResult]]:
    count = jobs if jobs == 1 else _count(jobs, files)
    if count == 1:
        for path, kind in files:
            yield path, kind, lint_file(path, kind, configured.of(path.as_posix()), overlay, {}, projects.wants_table)
        return
    from ldlm_lint.workers import linted

    for (path, kind), result in zip(files, linted(files, configured, overlay, projects, count), strict=True):
        yield path, kind, result


def _count(jobs: int, files: Sequence[tuple[Path, Kind]]) -> int:
    if len(files) < _FEW and not jobs:
        return 1
    from ldlm_lint.processors import count_for

    return count_for(jobs, files)
