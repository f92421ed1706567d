"""Named paths that exist but are not checked, with the reason, on stderr."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ldlm_lint.commands.output import place
from ldlm_lint.config import relative_to, spec_of
from ldlm_lint.discover import set_aside
from ldlm_lint.model import Problem
from ldlm_lint.report.cells import clean
from ldlm_lint.report.common import shown_path
from ldlm_lint.tomlfile import ConfigError

if TYPE_CHECKING:
    from ldlm_lint.config import Config, Configured

MOST = 10


def print_skipped(paths: Iterable[Path], configured: Configured, base: Path, files: int) -> None:
    """One line for each of the first named paths (absolute) that are left out, with the reason; ``files`` counts those
    that were read."""
    found = list(skipped(paths, configured, base, files))
    for one in found[:MOST]:
        print(f"note: {place(one, base)}{one.message}", file=sys.stderr)
    if len(found) > MOST:
        print(f"note: and {len(found) - MOST} more", file=sys.stderr)


def skipped(paths: Iterable[Path], configured: Configured, base: Path, files: int) -> Iterator[Problem]:
    """The named paths that are left out, each with the reason."""
    for path in dict.fromkeys(paths):
        excluded = configured.excludes(path.as_posix(), path.is_dir())
        reason = _excluded(path, configured, base) if excluded else set_aside(path, None)
        if not reason and not files and path.is_dir():
            reason = "all files in it are excluded"
        if reason:
            yield Problem(path.as_posix(), 1, f"not checked: {reason}")


def _excluded(path: Path, configured: Configured, base: Path) -> str:
    """The pattern that excludes a path, or a folder above it, and where it is written."""
    for one in (path, *path.parents):
        for folder in dict.fromkeys((one if one.is_dir() else one.parent, one.parent)):
            with contextlib.suppress(ConfigError):
                if found := _matching(configured.of_folder(folder.as_posix()), one, base):
                    return found
    return "it is excluded"


def _matching(config: Config, path: Path, base: Path) -> str:
    file = clean(shown_path(config.path, base))
    given = config.also_exclude
    for root, patterns, where in (
        (config.root, config.exclude, f"`exclude` in {file}"),
        (given.root, given.patterns, "the command line"),
    ):
        relative = relative_to(path.as_posix(), root)
        if relative is None or not patterns:
            continue
        result = spec_of(*patterns).check_file(f"{relative}/" if path.is_dir() else relative)
        if result.include and result.index is not None:
            return f'"{clean(patterns[result.index])}" of {where} matches it'
    return ""
