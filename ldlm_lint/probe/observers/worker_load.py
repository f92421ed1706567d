"""What a loader's workers do with their time: compute, wait for a CPU, or wait for something else (a disk, the training)."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

# Seconds between two readings: one takes some tens of microseconds for each worker.
_EVERY = 0.1
_PROCESSES = Path("/proc")


class Reading(NamedTuple):
    """The seconds that a process has computed and has waited for a CPU so far, and when that was read."""

    computed: float
    waited: float
    at: float


def read(process: int, processes: Path = _PROCESSES) -> Reading | None:
    """The reading of a process from the scheduler of Linux; None if the system does not provide it."""
    try:
        computed, waited, *_ = (processes / str(process) / "schedstat").read_text(encoding="ascii").split()
        return Reading(int(computed) / 1e9, int(waited) / 1e9, time.perf_counter())
    except (OSError, ValueError):
        return None


@dataclass
class WorkerLoad:
    """The first and the last reading of each worker of a loader, from its first batch on."""

    _first: dict[int, Reading] = field(default_factory=dict)
    _last: dict[int, Reading] = field(default_factory=dict)
    _next: float = 0.0

    def batch(self, iterator: Any) -> None:
        """A batch of an iterator arrived: look at its workers, unless that was done a moment ago."""
        now = time.perf_counter()
        processes = [one.pid for one in getattr(iterator, "_workers", ()) if one.pid]
        if not processes or (now < self._next and self._first.keys() >= set(processes)):
            return
        self._next = now + _EVERY
        self.look(processes)

    def look(self, processes: Iterable[int]) -> None:
        """Take a reading of each process."""
        for process in processes:
            reading = read(process)
            if reading is not None:
                self._first.setdefault(process, reading)
                self._last[process] = reading

    def plain(self) -> dict[str, float]:
        """The seconds of all workers together: in all, computed, and waited for a CPU."""
        pairs = [(first, self._last[process]) for process, first in self._first.items()]
        return {
            "seconds": round(sum(last.at - first.at for first, last in pairs), 6),
            "computed": round(sum(last.computed - first.computed for first, last in pairs), 6),
            "waited_for_cpu": round(sum(last.waited - first.waited for first, last in pairs), 6),
        }
