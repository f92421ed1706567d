"""Single iterations over a DataLoader: how long its workers took to start, and when its batches arrived."""

from __future__ import annotations

import multiprocessing.process
import time
from dataclasses import dataclass, field
from typing import Any

from ldlm_lint.probe.session import Session

MOST_PASSES = 100


@dataclass
class PassTimes:
    """The times of one iteration over a loader in seconds, on the wall clock.

    ``process_seconds`` is the main process's time to start the workers, ``iter_seconds`` all of ``iter(loader)``.
    ``batch_at_most`` bounds a worker's time for one batch: batch ``num_workers + 1`` comes from the worker of the first
    one, which created it after that. ``seconds`` last to the start of the loader's next iteration, or to the end of
    this one if it is the last.
    """

    began: float
    process_seconds: float
    iter_seconds: float
    workers: int
    first_wait: float | None = None
    batch_at_most: float | None = None
    seconds: float | None = None
    profiled: bool = False
    overlaps: bool = False
    _first_came: float = 0.0
    _batches: int = 0

    def came(self, waited: float) -> None:
        """A batch arrived, ``waited`` seconds after its request."""
        now = time.perf_counter()
        self._batches += 1
        if self._batches == 1:
            self.first_wait, self._first_came = waited, now
        elif self._batches == self.workers + 1:
            self.batch_at_most = now - self._first_came

    def ended(self, now: float) -> None:
        """The iteration is over, or the loader's next one begins."""
        self.seconds = now - self.began

    def plain(self) -> dict[str, Any]:
        """The times as a record of evidence; an iteration next to another one of its loader has no length."""
        return {
            "process_seconds": round(self.process_seconds, 6),
            "iter_seconds": round(self.iter_seconds, 6),
            "first_wait": _rounded(self.first_wait),
            "batch_at_most": _rounded(self.batch_at_most),
            "seconds": None if self.overlaps else _rounded(self.seconds),
            "profiled": self.profiled,
        }


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 6)


@dataclass
class LoaderPasses:
    """The iterations over one loader, in order; beyond the first hundred they are no longer kept."""

    times: list[PassTimes] = field(default_factory=list)
    running: PassTimes | None = None

    def begin(self, times: PassTimes) -> PassTimes:
        """The loader's next iteration begins."""
        if self.running is not None:
            self.running.ended(times.began)
        self.running = times
        if len(self.times) < MOST_PASSES:
            self.times.append(times)
        return times

    def asked(self, times: PassTimes, *, profiled: bool) -> None:
        """A batch of an iteration is requested: an older iteration may run concurrently with a newer one."""
        times.profiled |= profiled
        if times is not self.running:
            times.overlaps = True
            if self.running is not None:
                self.running.overlaps = True


class ProcessStarts:
    """The seconds that this process spent in starting child processes."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def install(self, session: Session, topic: str) -> None:
        """Time ``Process.start`` of this process."""
        session.patch(multiprocessing.process.BaseProcess, "start", self._timed, topic)

    def _timed(self, original: Any) -> Any:
        def start(process: Any) -> Any:
            began = time.perf_counter()
            try:
                return original(process)
            finally:
                self.seconds += time.perf_counter() - began

        return start
