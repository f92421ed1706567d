"""The version of the program: every entry becomes invalid with a change of ours, of Python, or of a parsing library."""

from __future__ import annotations

import functools
import os
import sys

from ldlm_lint import __version__

try:
    # The function that `hashlib` would return after loading OpenSSL, which takes a tenth of a replay.
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_LIBRARIES = (
    *("astroid-", "pylint-", "bashlex-", "packaging-", "pathspec-", "pyyaml-", "rich-"),
    *("tomli-", "tree_sitter-", "tree_sitter_bash-", "tree_sitter_toml-", "nbformat-"),
)
_SITES = ("site-packages", "dist-packages")


@functools.cache
def stamp() -> str:
    """A hash of the versions of everything that affects a result."""
    parts = [__version__, sys.version, sys.platform, *_libraries(), *_sources()]
    return blake2b("\n".join(parts).encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()


def key_of(*parts: str) -> str:
    """The name of an entry that depends on these parts and on the program."""
    return blake2b("\0".join((stamp(), *parts)).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _libraries() -> list[str]:
    """The names of the folders of installed distributions, whose names contain the versions."""
    found: list[str] = []
    for place in sys.path:
        if os.path.basename(place) in _SITES:
            try:
                found += [name for name in os.listdir(place) if name.lower().startswith(_LIBRARIES)]
            except OSError:
                continue
    return sorted(found)


def _sources() -> list[str]:
    """The files of this package: the installer's record, or in a checkout the status of its files."""
    record = os.path.join(os.path.dirname(_PACKAGE), f"ldlm_lint-{__version__}.dist-info", "RECORD")
    try:
        with open(record, encoding="utf-8") as file:
            return [file.read()]
    except (OSError, ValueError):
        return sorted(_statuses(_PACKAGE))


def _statuses(folder: str) -> list[str]:
    found: list[str] = []
    for entry in os.scandir(folder):
        if entry.is_dir(follow_symlinks=False):
            if entry.name != "__pycache__":
                found += _statuses(entry.path)
        elif entry.name.endswith((".py", ".json")):
            status = entry.stat()
            found.append(f"{entry.path} {status.st_size} {status.st_mtime_ns}")
    return found
