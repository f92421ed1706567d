"""The peak memory of a process and of the processes that it started, and whether it had CUDA."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ldlm_lint.probe.session import Observer, Session

# Seconds between two readings of the processes, and how much longer than a reading the time between them is.
_EVERY, _TIMES = 1.0, 50.0
_PROCESSES = Path("/proc")
_KIB = re.compile(r"^(\w+):\s+(\d+) kB$", re.MULTILINE)


class Footprint(Observer):
    """Peaks in bytes: resident memory of the process, what the processes that it started take besides, and the allocated
    and reserved bytes of the CUDA allocator.

    The allocator's own peak counters are read, never reset, since the program may read them, too. The memory of other
    processes is read between two steps, so that it is not part of their time.
    """

    topic = "footprint"

    def __init__(self) -> None:
        self._workers = 0
        self._next = 0.0

    def after_step(self, session: Session) -> None:
        """Read the memory of the other processes, from time to time."""
        began = time.perf_counter()
        if began >= self._next:
            self._workers = max(self._workers, besides(os.getpid()))
            now = time.perf_counter()
            self._next = now + max(_EVERY, _TIMES * (now - began))

    def collect(self, session: Session) -> dict[str, Any]:
        """``resident_peak_bytes``, ``worker_peak_bytes``, ``cuda_available``, and where there is a CUDA context ``device_peak_bytes``, ``device_reserved_bytes``."""
        found: dict[str, Any] = {}
        if sys.platform != "win32":
            import resource

            unit = 1 if sys.platform == "darwin" else 1024
            found["resident_peak_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
            found["worker_peak_bytes"] = self._workers
        cuda = session.torch.cuda
        found["cuda_available"] = bool(cuda.is_available())
        if found["cuda_available"] and cuda.is_initialized():
            statistics = cuda.memory_stats()
            found["device_peak_bytes"] = statistics.get("allocated_bytes.all.peak")
            found["device_reserved_bytes"] = statistics.get("reserved_bytes.all.peak")
        return found


def besides(process: int, processes: Path = _PROCESSES) -> int:
    """The bytes that the descendants of a process take now besides its own resident memory; 0 where the system does not
    tell.

    A forked worker shares most pages with its parent: their proportional shares, added up, count each page once. Pages
    of files are left out, since those of libraries are shared with other programs.
    """
    started = list(_descendants(process, processes))
    if not started:
        return 0
    shares = sum(_kib(processes / str(one) / "smaps_rollup", "Pss_Anon", "Pss_Shmem") for one in (process, *started))
    own = _kib(processes / str(process) / "status", "RssAnon", "RssShmem")
    return max(0, shares - own) * 1024


def _descendants(process: int, processes: Path) -> Iterator[int]:
    """The processes below a process, by the parent that each names: not every system lists children."""
    children: dict[int, list[int]] = {}
    for path in processes.glob("[0-9]*/stat"):
        try:
            # The name, in parentheses, may contain anything.
            parent = int(path.read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            continue
        children.setdefault(parent, []).append(int(path.parent.name))
    waiting = [process]
    while waiting:
        found = children.pop(waiting.pop(), [])
        yield from found
        waiting += found


def _kib(path: Path, *names: str) -> int:
    """The sum of some values of a file of the system, in KiB; 0 if it cannot be read."""
    try:
        text = path.read_text(encoding="ascii")
    except (OSError, ValueError):
        return 0
    return sum(int(size) for name, size in _KIB.findall(text) if name in names)
