"""The progress of a followed log: its newest step, the total, and the age of its last line."""

from __future__ import annotations

import os
import re
import time
from collections import deque
from collections.abc import Callable, Iterable

from ldlm_lint.monitor.records import Read, Record
from ldlm_lint.monitor.sources import Source

LOOKED_AT = 512
"""How many of the lines that came together are looked at for the number of steps."""

PATIENCE = 2000
"""So many records of another total in a row are those of the training: it was begun anew with other settings."""
PACE_EVERY, PACES, PACE_OVER = 5.0, 121, 20.0
"""Seconds between two readings of the step for the time left, how many are kept, and over how long they must be."""


class Progress:
    """The progress of one source: ``step``, ``epoch`` and ``total`` (None if unknown), and the age of the last line.

    The age of earlier content is that of the file. ``heard`` is when the last line came, in seconds since 1970; None
    before the first.
    """

    def __init__(
        self, source: Source, clock: Callable[[], float] = time.monotonic, wall: Callable[[], float] = time.time
    ) -> None:
        self.source, self.clock, self.wall = source, clock, wall
        self.step: int | None = None
        self.epoch: float | None = None
        self.total: int | None = None
        self.heard: float | None = None
        self._heard: float | None = None
        self._trained = False
        self._guess: tuple[int, int] | None = None
        self._others = 0
        self._paces: deque[tuple[float, int]] = deque(maxlen=PACES)

    def take(self, reads: Iterable[Read], caught_up: bool = True) -> None:
        """A batch of lines, the newest last. Not ``caught_up``: more of them were already there."""
        now = self.clock()
        before = self._written_before() if self._heard is None else 0.0
        self._heard, self.heard = now - before, self.wall() - before
        for line, records in reads:
            for record in records:
                if record.split != "val" and record.epoch is not None:
                    self.epoch = record.epoch
                if self._counts(record):
                    self._read(record, line.text)
        if caught_up and self.step is not None:
            self._reached(now, self.step)

    @property
    def left(self) -> float | None:
        """Seconds until the last step, at the pace of the last ten minutes; None if unknown so far."""
        if self.step is None or self.total is None or len(self._paces) < 2:
            return None
        (start, first), (end, last) = self._paces[0], self._paces[-1]
        if last <= first or end - start < PACE_OVER:
            return None
        return (self.total - self.step) * (end - start) / (last - first)

    def _reached(self, now: float, step: int) -> None:
        if self._paces and step < self._paces[-1][1]:
            self._paces.clear()  # the run went back, or an epoch began
        if not self._paces or now - self._paces[-1][0] >= PACE_EVERY:
            self._paces.append((now, step))

    @property
    def age(self) -> float | None:
        """Seconds since the last line; None before the first."""
        return None if self._heard is None else max(0.0, self.clock() - self._heard)

    def _written_before(self) -> float:
        try:
            return max(0.0, self.wall() - os.stat(self.source.path).st_mtime)
        except OSError:  # standard input
            return 0.0

    def _counts(self, record: Record) -> bool:
        """Whether the step of a record is that of the training: if lines with a loss have steps, only those count."""
        if record.split == "val" or record.step is None:
            return False
        trains = record.get("loss") is not None
        if trains and not self._trained:
            self._trained, self.total, self._guess = True, None, None
        return trains or not self._trained

    def _read(self, record: Record, text: str) -> None:
        step = record.step
        assert step is not None
        said = of_how_many(text, step)
        if self._of_another_bar(said):
            return
        self.step = step
        if self.total is not None and step > self.total:
            self.total = None
        if said is None:
            return
        # A date (`11/26`) or an epoch (`3/10`) matches once only; a total is the same at the next step.
        if self._guess is not None and self._guess[0] != step and self._guess[1] == said:
            self.total = said
        self._guess = (step, said)

    def _of_another_bar(self, said: int | None) -> bool:
        """Whether the total belongs to an evaluation's bar, which began after the training's."""
        if self.total is None or said is None or said == self.total:
            self._others = 0
            return False
        self._others += 1
        if self._others <= PATIENCE:
            return True
        self.total = None
        return False


_OF = re.compile(r"(?<![\d./-])(\d+) ?/ *(\d+)(?![\d./])")


def of_how_many(text: str, step: int) -> int | None:
    """The total that a line prints after its step (``120/5000``, ``[ 120 / 5000]``); None if none or two are
    printed.
    """
    found = {int(total) for number, total in _OF.findall(text) if int(number) == step}
    return found.pop() if len(found) == 1 and min(found) >= step else None
