"""``ldlm-lint clean``: removes the cache."""

from __future__ import annotations

import argparse

from ldlm_lint.cache import place
from ldlm_lint.commands.output import FAILURE, OK, fail

_UNIT = 1000
_UNITS = ("B", "kB", "MB", "GB")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``clean``, which has none."""
    parser.epilog = f"The cache is in your user cache directory, or in the directory of {place.VARIABLE}."


def run(arguments: argparse.Namespace) -> int:
    """Remove the cache, print its size, and return the exit code."""
    folder = place.directory()
    try:
        count, size = place.clean(folder) if folder else (0, 0)
    except OSError as error:
        return fail(FAILURE, f"{error.filename or folder}: {error.strerror or error}")
    if count:
        print(f"Removed {count} file{'s' if count != 1 else ''} ({_shown(size)}) from {folder}")
    else:
        print(f"Nothing to remove: there is no cache in {folder or 'your home directory'}")
    return OK


def _shown(size: float) -> str:
    """A number of bytes with a unit."""
    for unit in _UNITS[:-1]:
        if size < _UNIT:
            return f"{size:.3g} {unit}"
        size /= _UNIT
    return f"{size:.3g} {_UNITS[-1]}"
