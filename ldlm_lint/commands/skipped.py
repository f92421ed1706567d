"""Named paths that are not checked although they are there, and why, on stderr."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from ldlm_lint.commands.output import place
from ldlm_lint.config import Config, relative_to
from ldlm_lint.discover import set_aside
from ldlm_lint.model import Problem
from ldlm_lint.report.cells import clean
from ldlm_lint.report.common import shown_path

MOST = 10


def print_skipped(paths: Iterable[Path], config: Config, base: Path) -> None:
    """One line for each of the first named paths (absolute) that are left out: why."""
    found = list(skipped(paths, config, base))
    for one in found[:MOST]:
        print(f"note: {place(one, base)}{one.message}", file=sys.stderr)
    if len(found) > MOST:
        print(f"note: and {len(found) - MOST} more", file=sys.stderr)


def skipped(paths: Iterable[Path], config: Config, base: Path) -> Iterator[Problem]:
    """The named paths that are left out, each with the reason."""
    for path in dict.fromkeys(paths):
        reason = _excluded(path, config, base) or set_aside(path, None)
        if reason:
            yield Problem(path.as_posix(), 1, f"not checked: {reason}")


def _excluded(path: Path, config: Config, base: Path) -> str:
    """The pattern of ``exclude`` that takes out a path, and the file that it stands in; empty where none does."""
    relative = relative_to(path.as_posix(), config.root)
    if relative is None or not config.exclude:
        return ""
    from pathspec import GitIgnoreSpec

    result = GitIgnoreSpec.from_lines(config.exclude).check_file(f"{relative}/" if path.is_dir() else relative)
    if not result.include or result.index is None:
        return ""
    file = clean(shown_path(config.path, base))
    return f'"{clean(config.exclude[result.index])}" of `exclude` in {file} matches it'
