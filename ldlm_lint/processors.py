"""How many worker processes are worth starting; computed for every larger run, most of which need only one. How many GPUs
this machine has."""

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
    """How many processes lint: ``asked``, or for 0 as many as are worth starting; 1 is this process alone."""
    if asked:
        return min(asked, max(len(files), 1))
    if threading.active_count() > 1 or not forks():
        # Each process would import the checkers again, or start with locks that no thread releases.
        return 1
    worth = sum(map(size_of, files)) // WORTH_A_PROCESS
    return max(min(_processors(), worth), 1)


def size_of(file: File) -> int:
    """The bytes of a file, 0 if it does not exist."""
    try:
        return os.stat(file[0]).st_size
    except OSError:
        return 0


def gpus() -> int:
    """The GPUs of NVIDIA and AMD that this process may use, as Linux lists them; 0 on other systems."""
    try:
        devices = sum(name.startswith("nvidia") and name[6:].isdecimal() for name in os.listdir("/dev"))
        devices = devices or sum(name.startswith("renderD") for name in (os.listdir("/dev/dri") if os.path.exists("/dev/kfd") else ()))
    except OSError:
        return 0
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return devices if visible is None else min(devices, len([one for one in visible.split(",") if one.strip()]))


def forks() -> bool:
    """Whether a forked process can use what this one has loaded; on macOS system libraries do not survive a fork."""
    return sys.platform == "linux"


def _processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
