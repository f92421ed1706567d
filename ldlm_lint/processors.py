"""How many processes pay for themselves; asked of every larger run, most of which have enough of one."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from ldlm_lint.source import Kind

File = tuple[Path, Kind]
WORTH_A_PROCESS = 16_000_000
"""Bytes of files for which the start of another process is a small part of the work."""


def count_for(asked: int, files: Sequence[File]) -> int:
    """How many processes lint: ``asked``, or for 0 as many as pay for themselves; 1 is this process alone."""
    if asked:
        return min(asked, max(len(files), 1))
    if threading.active_count() > 1 or not forks():
        # Each process would import the checkers anew, or start with locks that nobody holds.
        return 1
    worth = sum(map(size_of, files)) // WORTH_A_PROCESS
    return max(min(_processors(), worth), 1)


def size_of(file: File) -> int:
    """The bytes of a file, 0 for one that is not there."""
    try:
        return os.stat(file[0]).st_size
    except OSError:
        return 0


def forks() -> bool:
    """Whether a process can go on with what this one has loaded; on macOS its libraries do not survive that."""
    return sys.platform == "linux"


def _processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
