"""The place in the user's code of a patched call."""

from __future__ import annotations

import functools
import hashlib
import itertools
import os
import sys
import sysconfig
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Not "data" and "scripts": they are the prefix itself, and a container keeps projects below /usr or /opt.
_LIBRARIES = tuple(
    {os.path.realpath(sysconfig.get_path(name)) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib")}
)
_INSTALLED = tuple(f"{os.sep}{name}{os.sep}" for name in ("site-packages", "dist-packages"))
# A program may change its folder (Hydra does); Python's file names are relative to the starting folder.
try:
    _START = os.getcwd()
except OSError:  # the folder was removed
    _START = os.sep
# The name of a frame in which the probe calls a function on behalf of other code.
STAND_IN = "<ldlm-lint probe>"
_digests: dict[str, str] = {}


def call_site(root: str, depth: int = 2) -> dict[str, Any] | None:
    """The innermost frame of the project (below ``root`` and no installed library) as a `Site` mapping.

    None if no frame is the project's. For a multi-line call Python reports the current line; the call's last line is
    given as ``end_line`` if the interpreter provides it (3.11).
    """
    return next(_project_sites(root, sys._getframe(depth)), None)


def call_chain(root: str, most: int, depth: int = 2) -> list[dict[str, Any]]:
    """As `call_site`, with the places that it was called from inside the project, the innermost first."""
    return list(itertools.islice(_project_sites(root, sys._getframe(depth)), most))


def _project_sites(root: str, frame: FrameType | None) -> Iterator[dict[str, Any]]:
    while frame is not None:
        path = frame.f_code.co_filename
        if is_project(path, root) and frame.f_code.co_name != STAND_IN:
            yield _site(frame, path, root)
        frame = frame.f_back


def foreign_site(depth: int = 2) -> str:
    """``path:line`` of the nearest frame that is neither torch's nor the probe's: the framework behind the call."""
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None:
        path = frame.f_code.co_filename
        if not path.startswith((_OWN, "<")) and f"{os.sep}torch{os.sep}" not in path:
            return f"{path}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


def is_own(path: str) -> bool:
    """Whether a code object's file is the probe's."""
    return path.startswith(_OWN)


@functools.cache
def is_project(path: str, root: str) -> bool:
    """Whether a code object's file is the user's: below the root, and not in an environment of installed packages."""
    if path.startswith("<"):
        return False
    full = real(path)
    return full.startswith(_top(root)) and not (
        full.startswith((_OWN + os.sep, *_LIBRARIES)) or any(name in full for name in _INSTALLED)
    )


@functools.cache
def real(path: str) -> str:
    """The absolute path without links that a code object's file name stood for when the program started."""
    return os.path.realpath(os.path.join(_START, path))


@functools.cache
def _top(root: str) -> str:
    return os.path.realpath(root).rstrip(os.sep) + os.sep


def source_site(path: str, first: int, last: int, root: str, function: str = "") -> dict[str, Any]:
    """A `Site` mapping for lines of a file, such as a class definition's."""
    full, top = real(path), _top(root)
    shown = full[len(top) :] if full.startswith(top) else full
    return {
        "path": shown.replace(os.sep, "/"),
        "line": first,
        "end_line": max(first, last),
        "sha256": digest(full),
        "function": function,
    }


def _site(frame: Any, path: str, root: str) -> dict[str, Any]:
    first = last = frame.f_lineno
    positions = getattr(frame.f_code, "co_positions", None)
    if positions is not None:
        begin, end, *_ = next(itertools.islice(positions(), frame.f_lasti // 2, None), (None, None))
        if begin is not None:
            first, last = begin, end or begin
    name = getattr(frame.f_code, "co_qualname", frame.f_code.co_name)
    return source_site(path, first, last, root, name)


def digest(path: str) -> str:
    """The SHA-256 of a file in hex, empty if it cannot be read; each file is read once."""
    if path not in _digests:
        try:
            with open(path, "rb") as file:
                _digests[path] = hashlib.sha256(file.read()).hexdigest()
        except OSError:
            _digests[path] = ""
    return _digests[path]
