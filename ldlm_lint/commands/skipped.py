"""Named paths that are not checked although they are there, and why, on stderr."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from ldlm_lint.commands.output import place
from ldlm_lint.config import Configured, Patterns, relative_to, spec_of
from ldlm_lint.discover import set_aside
from ldlm_lint.model import Problem
from ldlm_lint.report.cells import clean
from ldlm_lint.report.common import shown_path
from ldlm_lint.tomlfile import ConfigError

MOST = 10


def print_skipped(paths: Iterable[Path], configured: Configured, base: Path) -> None:
    """One line for each of the first named paths (absolute) that are left out: why."""
    found = list(skipped(paths, configured, base))
    for one in found[:MOST]:
        print(f"note: {place(one, base)}{one.message}", file=sys.stderr)
    if len(found) > MOST:
        print(f"note: and {len(found) - MOST} more", file=sys.stderr)


def skipped(paths: Iterable[Path], configured: Configured, base: Path) -> Iterator[Problem]:
    """The named paths that are left out, each with the reason."""
    for path in dict.fromkeys(paths):
        reason = _excluded(path, configured, base) or set_aside(path, None)
        if reason:
            yield Problem(path.as_posix(), 1, f"not checked: {reason}")


def _excluded(path: Path, configured: Configured, base: Path) -> str:
    """The pattern that excludes a path, and where it is written; empty where none does."""
    is_directory = path.is_dir()
    if not configured.excludes(path.as_posix(), is_directory):
        return ""
    for folder in (path, *path.parents) if is_directory else path.parents:
        for patterns, origin in _patterns(configured, folder, base):
            found = _first(patterns, path, is_directory)
            if found:
                return f'"{clean(found)}" of {origin} matches it'
    return "it is excluded"


def _patterns(configured: Configured, folder: Path, base: Path) -> Iterator[tuple[Patterns, str]]:
    """The patterns that hold in a directory, and where they are written; none where its configuration is broken."""
    try:
        config = configured.of_folder(folder.as_posix())
    except ConfigError:
        return
    yield Patterns(config.root, config.exclude), f"`exclude` in {clean(shown_path(config.path, base))}"
    yield config.also_exclude, "the command line"


def _first(patterns: Patterns, path: Path, is_directory: bool) -> str:
    """The pattern that decides that a path is excluded; empty where none does."""
    relative = relative_to(path.as_posix(), patterns.root)
    if relative is None or not patterns.patterns:
        return ""
    result = spec_of(*patterns.patterns).check_file(f"{relative}/" if is_directory else relative)
    return patterns.patterns[result.index] if result.include and result.index is not None else ""
