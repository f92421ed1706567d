"""The changes of a run as one patch that ``git apply`` takes, on bytes."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePath

_ESCAPES = {7: "a", 8: "b", 9: "t", 10: "n", 11: "v", 12: "f", 13: "r", 34: '"', 92: "\\"}
_NO_NEWLINE = b"\n\\ No newline at end of file\n"


def patch_base(folder: Path) -> Path:
    """The folder that names in a patch are relative to for git: the top of the working tree around ``folder``.

    From a folder below, ``git apply`` silently skips a patch with names relative to that folder. Without a working tree
    it is ``folder`` itself, which must be absolute.
    """
    return next((place for place in (folder, *folder.parents) if (place / ".git").exists()), folder)


def unified_diff(base: Path, before: Mapping[str, bytes], after: Mapping[str, bytes]) -> bytes:
    """One unified diff over the files that ``after`` changes, in the order of their paths.

    The keys are absolute paths with forward slashes; names in the patch are relative to ``base`` (see `patch_base`; a
    file outside of it keeps its whole path, for ``patch -p1`` at the root). git does not patch through a link: the
    target of a path is named, once. Lines end at ``\\n`` alone, as git sees them, so carriage returns and any encoding
    pass through unchanged.
    """
    names = {_name(base, path): path for path in sorted(after, reverse=True) if before[path] != after[path]}
    ordered = sorted(names, key=names.__getitem__)
    return b"".join(line for name in ordered for line in _file_diff(name, before[names[name]], after[names[name]]))


def _file_diff(name: str, before: bytes, after: bytes) -> Iterator[bytes]:
    old, new = _quoted("a/" + name), _quoted("b/" + name)
    # Git ends a name that holds a blank with a tab; otherwise patch would read the following text as a date.
    tab = b"\t" if " " in name else b""
    yield b"diff --git " + old + b" " + new + b"\n--- " + old + tab + b"\n+++ " + new + tab + b"\n"
    lines = difflib.diff_bytes(difflib.unified_diff, _lines(before), _lines(after))
    for index, line in enumerate(lines):
        if index >= 2:
            yield line if line.endswith(b"\n") else line + _NO_NEWLINE


def _lines(data: bytes) -> list[bytes]:
    lines = [line + b"\n" for line in data.split(b"\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def _name(base: Path, path: str) -> str:
    real, top = PurePath(os.path.realpath(path)), os.path.realpath(base)
    if real.is_relative_to(top):
        return real.relative_to(top).as_posix()
    pure = PurePath(path)
    if pure.is_relative_to(base):
        return pure.relative_to(base).as_posix()
    return pure.relative_to(pure.anchor).as_posix()


def _quoted(name: str) -> bytes:
    """A name in git's format: plain, or in double quotes with escapes if it holds anything unusual."""
    raw = os.fsencode(name)
    if all(32 <= byte < 127 and byte not in _ESCAPES for byte in raw):
        return raw
    return b'"' + "".join(map(_escaped, raw)).encode("ascii") + b'"'


def _escaped(byte: int) -> str:
    if byte in _ESCAPES:
        return "\\" + _ESCAPES[byte]
    return chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}"
