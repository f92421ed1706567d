"""Which program answers: no entry survives a change of ours, of Python, or of a library that reads files for us."""

from __future__ import annotations

import functools
import os
import sys

from ldlm_lint import __version__

try:
    # What `hashlib` would hand on, after it has loaded OpenSSL: a tenth of the time in which a run is shown again.
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
    """The version of everything that takes part in an answer, as a hash."""
    parts = [__version__, sys.version, sys.platform, *_libraries(), *_sources()]
    return blake2b("\n".join(parts).encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()


def key_of(*parts: str) -> str:
    """The name of an entry that rests on these parts and on the program."""
    return blake2b("\0".join((stamp(), *parts)).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _libraries() -> list[str]:
    """The names of the folders in which installers record what they installed: they hold the versions."""
    found: list[str] = []
    for place in sys.path:
        if os.path.basename(place) in _SITES:
            try:
                found += [name for name in os.listdir(place) if name.lower().startswith(_LIBRARIES)]
            except OSError:
                continue
    return sorted(found)


def _sources() -> list[str]:
    """What this package consists of: the installer's record of it, in a checkout the status of its files."""
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
