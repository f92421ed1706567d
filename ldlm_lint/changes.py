"""Which lines of which files changed since a revision, as plain values; `ldlm_lint.gitdiff` asks git for them."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import NamedTuple


class FileChanges(NamedTuple):
    """The changes of one file.

    ``added`` are the first and last lines (1-based) of what was added or changed, ``removed`` the lines behind which
    something was removed. Lines end with ``\\n`` alone, as they do for git.
    """

    added: tuple[tuple[int, int], ...] = ()
    removed: tuple[int, ...] = ()

    def touch(self, first: int, last: int) -> bool:
        """Whether one of the lines changed, or something was removed between two of them."""
        return any(start <= last and first <= end for start, end in self.added) or any(
            first <= line < last for line in self.removed
        )


WHOLE = FileChanges(((1, sys.maxsize),))
UNCHANGED = FileChanges()


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes of a working tree; paths are real ones, absolute with forward slashes.

    A file that is neither tracked by git nor part of a submodule counts as entirely new.
    """

    files: Mapping[str, FileChanges] = field(default_factory=dict)
    tracked: frozenset[str] = frozenset()

    def of(self, path: str) -> FileChanges:
        """The changes of a file."""
        real = PurePath(os.path.realpath(path))
        name = real.as_posix()
        if name in self.files:
            return self.files[name]
        known = name in self.tracked or any(parent.as_posix() in self.tracked for parent in real.parents)
        return UNCHANGED if known else WHOLE

    def after(self, before: Mapping[str, bytes], after: Mapping[str, bytes]) -> Changes:
        """The changes once files have new contents, including edits made in between."""
        moved = {
            PurePath(os.path.realpath(path)).as_posix(): _moved(self.of(path), before[path], data)
            for path, data in after.items()
            if path in before
        }
        return Changes({**self.files, **moved}, self.tracked)


def between(before: bytes, after: bytes) -> FileChanges:
    """What changed from one content of a file to the next."""
    return _moved(UNCHANGED, before, after)


def _moved(changes: FileChanges, before: bytes, after: bytes) -> FileChanges:
    if changes == WHOLE or before == after:
        return changes
    import difflib

    added: list[tuple[int, int]] = []
    removed: list[int] = []
    matcher = difflib.SequenceMatcher(None, before.split(b"\n"), after.split(b"\n"), autojunk=False)
    for tag, start, end, new_start, new_end in matcher.get_opcodes():
        if tag == "equal":
            kept = ((max(first, start + 1), min(last, end)) for first, last in changes.added)
            shift = new_start - start
            added += [(first + shift, last + shift) for first, last in kept if first <= last]
            removed += [line + shift for line in changes.removed if start < line <= end]
        elif new_start < new_end:
            added.append((new_start + 1, new_end))
        else:
            removed.append(new_start)
    return FileChanges(tuple(added), tuple(removed))
