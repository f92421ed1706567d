"""The files that git and ``exclude`` leave out: the patterns of ignore files, level by level."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ldlm_lint.config import project_root, relative_to
from ldlm_lint.files import disk
from ldlm_lint.patterns import lazily

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

FILE_NAME = ".gitignore"
CACHE_TAG = "CACHEDIR.TAG"
"""A file that marks its folder as a cache (https://bford.info/cachedir/)."""
_OF_REPOSITORY = ".git/info/exclude"
_LARGEST = 2_000_000
_MOST_PATTERNS = 20_000
# Each further star of a segment multiplies the ways to match a name with its length.
_COSTLY = lazily(r"(?:\*[^*/]+){4}|.{1000}")
Note = Callable[[str, str], object]
"""Told of each look at the file system that an answer rests on: a kind of `ldlm_lint.cache.index.LOOKS`, and the path."""


def note_nothing(kind: str, path: str) -> None:
    """A callback that ignores the look-ups."""


class Level(NamedTuple):
    """The ignore patterns of one directory; ``any`` matches every path that one of them may match."""

    directory: str
    spec: GitIgnoreSpec
    any: re.Pattern[str]

    def verdict(self, path: str, is_directory: bool) -> bool | None:
        """Whether a path (absolute) is ignored, None if no pattern mentions it."""
        relative = relative_to(path, self.directory)
        if relative is None:
            return None
        relative += "/" if is_directory else ""
        return self.spec.check_file(relative).include if self.any.match(relative) else None


def ignored(path: str, is_directory: bool, levels: Sequence[Level]) -> bool:
    """Whether git ignores a path, decided by the deepest ignore file with a matching pattern."""
    for level in reversed(levels):
        verdict = level.verdict(path, is_directory)
        if verdict is not None:
            return verdict
    return False


def level(directory: str, name: str = FILE_NAME, *, below: str = "") -> Iterator[Level]:
    """The patterns of an ignore file, without those that match ``below``, a directory that the user named."""
    try:
        # As git does it: a link is not followed; and no pipe is waited for.
        if not stat.S_ISREG(os.lstat(os.path.join(directory, name)).st_mode):
            return
        text = disk.read(Path(directory, name), _LARGEST).decode(errors="replace")
    except OSError:
        return
    # Imported here, so that a run without ignore files does not wait for it.
    from pathspec import GitIgnoreSpec

    patterns: list[Any] = []
    for line in text.splitlines()[:_MOST_PATTERNS]:
        if _COSTLY.search(line):
            continue
        try:
            patterns += GitIgnoreSpec.from_lines([line]).patterns
        except (ValueError, re.error):
            # git itself ignores a line that is not a pattern, and matches nothing with a range such as [z-a].
            continue
    relative = relative_to(below, directory) if below else None
    if relative is not None:
        patterns = [one for one in patterns if not one.include or one.match_file(relative + "/") is None]
    yield Level(directory, GitIgnoreSpec(patterns), _any_of(one.regex for one in patterns if one.regex is not None))


def _any_of(expressions: Iterator[re.Pattern[str]]) -> re.Pattern[str]:
    """One expression for all: most paths match no pattern, and matching them one by one is a walk's greatest cost."""
    return re.compile("|".join(re.sub(r"\(\?P<\w+>", "(?:", one.pattern) for one in expressions) or r"(?!)")


def levels_above(path: Path, note: Note = note_nothing) -> tuple[Level, ...]:
    """The ignore files that git reads for the files in a directory, from the top of its repository downwards."""
    chain = (path, *path.parents)
    for one in chain:
        note("exists", (one / ".git").as_posix())
    repository = next((one for one in chain if (one / ".git").exists()), None) or project_root(path, note)
    note("file", (repository / _OF_REPOSITORY).as_posix())
    levels = list(level(repository.as_posix(), _OF_REPOSITORY, below=path.as_posix()))
    for directory in reversed(chain[1 : chain.index(repository) + 1]):
        note("file", (directory / FILE_NAME).as_posix())
        levels += level(directory.as_posix(), below=path.as_posix())
    return tuple(levels)
