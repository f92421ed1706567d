"""A series for a picture: in constant memory, with every spike and every NaN of it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from ldlm_lint.monitor.records import Record

STRETCHES = 512


class Point(NamedTuple):
    """One value with its place: ``index`` counts the records of the series from 0, ``line`` is 1-based."""

    index: int  # type: ignore[assignment]  # nobody asks a point for the index of a value
    line: int
    step: int | None
    epoch: float | None
    value: float


@dataclass(slots=True)
class Stretch:
    """Neighbouring records: the lowest and the highest finite value, and the first and last non-finite one."""

    low: Point | None = None
    high: Point | None = None
    lost: Point | None = None
    lost_last: Point | None = None

    def take(self, values: Sequence[float], records: Sequence[Record], index: int) -> None:
        """Take the next records in; ``index`` is the place of the first one in the series."""
        finite = values
        if not math.isfinite(sum(values)):
            lost = [place for place, value in enumerate(values) if not math.isfinite(value)]
            if lost:
                self.lost_last = _point(lost[-1], values, records, index)
                self.lost = self.lost or _point(lost[0], values, records, index)
                finite = [value for value in values if math.isfinite(value)]
            if not finite:
                return
        low, high = min(finite), max(finite)
        if self.low is None or low < self.low.value:
            self.low = _point(values.index(low), values, records, index)
        if self.high is None or high > self.high.value:
            self.high = _point(values.index(high), values, records, index)

    def joined(self, after: Stretch) -> Stretch:
        """This stretch and the one after it as one."""
        lows = [one for one in (self.low, after.low) if one]
        highs = [one for one in (self.high, after.high) if one]
        return Stretch(
            min(lows, key=lambda one: one.value, default=None),
            max(highs, key=lambda one: one.value, default=None),
            self.lost or after.lost,
            after.lost_last or self.lost_last,
        )

    @property
    def finite(self) -> list[Point]:
        """One or two points, in the order of the log; empty if no value is finite."""
        return sorted({one for one in (self.low, self.high) if one is not None})


def _point(place: int, values: Sequence[float], records: Sequence[Record], index: int) -> Point:
    record = records[place]
    return Point(index + place, record.line, record.step, record.epoch, values[place])


@dataclass(slots=True)
class Trace:
    """At most ``capacity`` stretches of equally many records (`width`); the last one may be shorter.

    ``latest`` is the last value in the log, also NaN, and ``last`` its record.
    """

    capacity: int = STRETCHES
    width: int = 1
    count: int = 0
    latest: float = math.nan
    last: Record | None = None
    stretches: list[Stretch] = field(default_factory=list)

    def extend(self, values: Sequence[float], records: Sequence[Record]) -> None:
        """Take values in, finite or not, with the records that they are from."""
        if not values:
            return
        start = 0
        while start < len(values):
            room = -self.count % self.width
            if not room:
                self._halve()
                self.stretches.append(Stretch())
                room = -self.count % self.width or self.width
            end = min(start + room, len(values))
            self.stretches[-1].take(values[start:end], records[start:end], self.count)
            self.count += end - start
            start = end
        self.latest, self.last = values[-1], records[-1]

    def _halve(self) -> None:
        """Free space for another stretch: pairs become one. The capacity is even, so that none remains."""
        if len(self.stretches) < self.capacity:
            return
        pairs = zip(self.stretches[::2], self.stretches[1::2], strict=True)
        self.stretches = [one.joined(after) for one, after in pairs]
        self.width *= 2

    def points(self) -> Iterator[Point]:
        """The finite points, in the order of the log."""
        for stretch in self.stretches:
            yield from stretch.finite

    def lost(self) -> list[tuple[Point, Point]]:
        """Ranges of non-finite values: first and last point; neighbouring stretches are merged."""
        found = [(number, one) for number, one in enumerate(self.stretches) if one.lost is not None]
        groups: list[list[Stretch]] = []
        for (before, _), (number, one) in pairwise([(-2, Stretch()), *found]):
            if number - before == 1:
                groups[-1].append(one)
            else:
                groups.append([one])
        return [(group[0].lost, group[-1].lost_last) for group in groups]  # type: ignore[misc]
