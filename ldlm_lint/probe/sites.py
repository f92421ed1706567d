"""Where in the user's code a patched call comes from."""

from __future__ import annotations

import hashlib
import os
import sys
import sysconfig
from typing import Any

_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_LIBRARIES = tuple({os.path.realpath(path) + os.sep for path in sysconfig.get_paths().values() if path})
_digests: dict[str, str] = {}


def call_site(root: str, depth: int = 2) -> dict[str, Any] | None:
    """The innermost frame of the project (below ``root`` and no installed library) as a `Site` mapping.

    None where no frame is the project's. Of a call over several lines Python names the line it is at; the call's last
    line is given as ``end_line`` where the interpreter knows it (3.11).
    """
    frame = sys._getframe(depth)
    while frame is not None:
        path = frame.f_code.co_filename
        if is_project(path, root):
            return _site(frame, path, root)
        frame = frame.f_back
    return None


def foreign_site(depth: int = 2) -> str:
    """``path:line`` of the nearest frame that is neither torch's nor the probe's: the framework that made the call."""
    frame = sys._getframe(depth)
    while frame is not None:
        path = frame.f_code.co_filename
        if not path.startswith((_OWN, "<")) and f"{os.sep}torch{os.sep}" not in path:
            return f"{path}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


def is_project(path: str, root: str) -> bool:
    """Whether a code object's file is the user's: below the root, and not in an environment of installed packages."""
    if path.startswith("<"):
        return False
    full = os.path.realpath(path)
    below = full.startswith(os.path.realpath(root).rstrip(os.sep) + os.sep)
    return below and not full.startswith((_OWN + os.sep, *_LIBRARIES)) and f"{os.sep}site-packages{os.sep}" not in full


def source_site(path: str, first: int, last: int, root: str, function: str = "") -> dict[str, Any]:
    """A `Site` mapping for lines of a file, such as a class definition's."""
    full = os.path.realpath(path)
    top = os.path.realpath(root).rstrip(os.sep) + os.sep
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
        found = [one for index, one in enumerate(positions()) if index == frame.f_lasti // 2]
        if found and found[0][0] is not None:
            first, last = found[0][0], found[0][1] or found[0][0]
    name = getattr(frame.f_code, "co_qualname", frame.f_code.co_name)
    return source_site(path, first, last, root, name)


def digest(path: str) -> str:
    """The SHA-256 of a file in hex, empty where it cannot be read; each file is read once."""
    if path not in _digests:
        try:
            with open(path, "rb") as file:
                _digests[path] = hashlib.sha256(file.read()).hexdigest()
        except OSError:
            _digests[path] = ""
    return _digests[path]
