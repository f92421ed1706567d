"""How the commands use the cache: a session for the files that they read, and recorded runs of a check that can be
replayed."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ldlm_lint.cache import replay

if TYPE_CHECKING:
    from ldlm_lint.cache.session import Session

_HARMLESS = frozenset(
    (
        *("paths", "select", "extend_select", "ignore", "level", "config", "isolated", "pedantic", "fail_level"),
        *("exclude", "extend_exclude", "sort", "group_by", "min_confidence"),
        *("format", "statistics", "quiet", "color", "exit_zero", "baseline", "no_baseline", "jobs", "unsafe_fixes"),
        *("command", "argv", "no_cache"),
    )
)
"""The arguments with which a check reads files and prints, and does nothing else."""


def remembered(arguments: argparse.Namespace, base: Path, work: Callable[[Session | None], int]) -> int:
    """Run a check with the cache of earlier runs and update the cache; returns the exit code."""
    session = session_for(arguments, base)
    if session is None:
        return work(None)
    try:
        return _recorded(arguments, base, session, work) if _only_prints(arguments) else work(session)
    finally:
        session.close()


def session_for(arguments: argparse.Namespace, base: Path) -> Session | None:
    """The cache for the project of the paths; None if it is switched off or unavailable."""
    if arguments.no_cache:
        return None
    from ldlm_lint.cache.session import opened
    from ldlm_lint.config import common_directory, project_root

    paths = [Path(os.path.abspath(base / path)) for path in arguments.paths]
    return opened(project_root(common_directory(paths)))


def _only_prints(arguments: argparse.Namespace) -> bool:
    return all(name in _HARMLESS for name, value in vars(arguments).items() if value)


def _recorded(
    arguments: argparse.Namespace, base: Path, session: Session, work: Callable[[Session | None], int]
) -> int:
    for kind, path in _looks(arguments, base):
        session.note(kind, path)
    with _listening() as (output, notes):
        code = work(session)
    # Output that moves the cursor was drawn for a user who was watching.
    if session.lasting and "\r" not in notes.heard:
        with contextlib.suppress(OSError):
            session.remember(replay.key(arguments.argv), replay.recorded(output.heard, notes.heard, code))
    return code


@contextlib.contextmanager
def _listening() -> Iterator[tuple[replay.Listener, replay.Listener]]:
    output, notes = replay.Listener(sys.stdout), replay.Listener(sys.stderr)
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(notes):
        yield output, notes


def _looks(arguments: argparse.Namespace, base: Path) -> Iterator[tuple[str, str]]:
    """What a check looks at in addition to the linted files: configuration, baseline, journal."""
    from ldlm_lint.autofix.root import journal_root, runs_of
    from ldlm_lint.baseline import FILE_NAME
    from ldlm_lint.config import common_directory, looked_at, project_root

    paths = [Path(os.path.abspath(base / path)) for path in arguments.paths]
    start = common_directory(paths)
    explicit = Path(os.path.abspath(base / arguments.config)) if arguments.config else None
    yield from looked_at(start, explicit)
    for path in (project_root(start) / FILE_NAME, *((base / arguments.baseline,) if arguments.baseline else ())):
        yield "file", Path(os.path.abspath(path)).as_posix()
    runs = runs_of(journal_root(paths, base))
    for folder in (runs.parent, runs):
        yield "listing", folder.as_posix()
    with contextlib.suppress(OSError):
        yield from (("file", (runs / name / "state").as_posix()) for name in sorted(os.listdir(runs)))
