"""The order of a log: epochs, restarts, and gaps in its time."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence

from ldlm_lint.monitor.alarms import Level
from ldlm_lint.monitor.detectors.base import Context, Found, at
from ldlm_lint.monitor.detectors.robust import median
from ldlm_lint.monitor.records import Record


class Order:
    """Steps of one line template that decrease: a new epoch, a restart from a checkpoint, or several writers.

    A return to the first steps is a new epoch unless the epoch is printed and did not increase. A return to the middle
    is a restart: a note, and an alarm from the third on. If one step in ten decreases, several processes write into one
    log, and its order is not judged.
    """

    ALARM, MIXED = 3, 0.1

    def __init__(self) -> None:
        self.last: Record | None = None
        self.low: int | None = None
        self.seen = self.back = self.restarts = 0

    def feed(self, records: Sequence[Record], context: Context) -> Iterator[Found]:
        """Process the next records of the template; a block whose steps rise within an epoch is skipped."""
        last, final = self.last, records[-1]
        if last is not None and last.step is not None and final.step is not None:
            steps = [-1 if one.step is None else one.step for one in records]
            if steps[0] >= last.step and steps == sorted(steps) and _epoch(last) == _epoch(final):
                self.seen += len(records)
                self.last = final
                return
        for record in records:
            yield from self._one(record, context)

    def _one(self, record: Record, context: Context) -> Iterator[Found]:
        last, self.last = self.last, record
        self.seen += 1
        if record.step is None or last is None or last.step is None:
            self.low = record.step if self.low is None else self.low
            return
        risen = record.epoch is not None and last.epoch is not None and _epoch(record) > _epoch(last)
        if record.step >= last.step:
            if risen:
                context.marks.append(record.line)
            return
        context.marks.append(record.line)
        self.back += 1
        fell = record.epoch is not None and last.epoch is not None and record.epoch < last.epoch
        anew = begins_anew(record.step, last.step, self.low or 0)
        if self.back > max(self.ALARM, self.MIXED * self.seen) or risen or (anew and not fell):
            return
        self.restarts += 1
        text = f"step {record.step} after step {last.step}: the run continued from an earlier state"
        level = Level.WARNING if self.restarts >= self.ALARM else None
        if level is not None:
            text += f", {self.restarts} times"
        yield Found(
            "restart", record, text, {"step": record.step, "before": last.step, "restarts": self.restarts}, level
        )


def begins_anew(step: int, before: int, low: int) -> bool:
    """Whether a decreasing step is among the first ones (a new epoch) and not in the middle."""
    return step <= 2 * max(low, 1) or step <= 0.02 * before


def _epoch(record: Record) -> int:
    return -1 if record.epoch is None or not math.isfinite(record.epoch) else int(record.epoch)


class Silence:
    """A gap in the clock of a log: 10 times the usual one, 3 times the largest before, and at least two minutes.

    Gaps that end with an evaluation or at an epoch boundary are expected: validation and checkpoints often log nothing.
    A gap with a program restart (many other lines) is a note. ``pauses`` are the log lines about either.
    """

    FACTOR, OVER, LEAST, FEWEST, TALK = 10.0, 3.0, 120.0, 10, 5

    def __init__(self, least: float = LEAST, pauses: deque[int] | None = None) -> None:
        self.least = least
        self.pauses = deque(maxlen=0) if pauses is None else pauses
        self.gaps: deque[float] = deque(maxlen=100)
        self.longest = 0.0
        self.last: Record | None = None
        self.count = 0
        self.usual = self.lines = 0.0
        self.between: deque[int] = deque(maxlen=100)

    def feed(self, record: Record, context: Context) -> Iterator[Found]:
        """Take the next record of a process in."""
        last = self.last
        if record.time is None:
            return
        self.last = record
        if last is None or last.time is None:
            return
        gap = record.time - last.time
        if gap <= 0:
            return
        if gap > self.least and gap > self.limit and not self._explained(last, record, context):
            text = f"nothing for {seconds(gap)} before {at(record)}; the usual gap is {seconds(self.usual)}"
            yield Found(
                "silence", record, text, {"seconds": gap, "usual": self.usual, "longest": self.longest}, since=last
            )
        if self.count:
            # The first gap holds the compilation and the start of the workers.
            self.longest = max(self.longest, gap)
            self.gaps.append(gap)
            self.between.append(record.line - last.line)
        self.count += 1
        if self.count <= self.FEWEST or self.count % 16 == 0:
            self.usual = median(self.gaps) if self.gaps else 0.0
            self.lines = median(self.between) if self.between else 0.0

    @property
    def limit(self) -> float:
        """The seconds from which a gap is unusual; infinite while too few are known."""
        if len(self.gaps) < self.FEWEST:
            return float("inf")
        return max(self.FACTOR * self.usual, self.OVER * self.longest, self.least)

    def _explained(self, last: Record, record: Record, context: Context) -> bool:
        return (
            "val" in (last.split, record.split)
            or Context.within(self.pauses, last.line, record.line)
            or Context.within(context.marks, last.line, record.line)
        )


def seconds(value: float) -> str:
    """A duration for people: ``45 s``, ``12 min``, ``3.5 h``."""
    if value < 90:
        return f"{value:.3g} s"
    return f"{value / 60:.3g} min" if value < 5400 else f"{value / 3600:.3g} h"
