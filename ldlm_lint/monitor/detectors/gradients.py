"""Gradient norms that explode or vanish, against the spread that the series has on a logarithmic scale."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence

from ldlm_lint.monitor.detectors.base import WARM_UP, Context, Found, at, number
from ldlm_lint.monitor.detectors.robust import deviation, median
from ldlm_lint.monitor.records import Record

WINDOW, FEWEST, EVERY = 100, 30, 32
FACTOR = 10.0
"""Times the rolling median. A norm of lognormal(0, 0.3) stays below 3 times."""
SIGMAS = 6.0
BEYOND = 2.5
"""Times the highest ordinary value of the series so far: a norm with a heavy tail has been there before."""


class GradientExplosion:
    """A norm above 10 times the rolling median of the last 100, and above the ordinary range of the series."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.window: deque[float] = deque(maxlen=WINDOW)
        self.seen = 0
        self.highest = 0.0
        self.center, self.limit = 0.0, math.inf

    def feed(self, values: Sequence[float], records: Sequence[Record], context: Context) -> Iterator[Found]:
        """Judge a block in stretches that end where the limit is set again."""
        start = 0
        while start < len(values):
            end = min(start + EVERY - self.seen % EVERY, len(values))
            part = values[start:end]
            if max(part) > self.limit:
                for value, record in zip(part, records[start:end], strict=True):
                    if value > self.limit:
                        yield self._found(value, record)
                part = [min(one, self.limit) for one in part]
            self.window.extend(part)
            self.seen += end - start
            start = end
            if self.seen % EVERY == 0 and self.seen >= FEWEST:
                self._set()

    def _set(self) -> None:
        positive = [one for one in self.window if one > 0]
        if len(positive) < FEWEST:
            return
        logs = [math.log(one) for one in positive]
        middle = median(logs)
        self.center = math.exp(middle)
        # The early steps of a run have norms of their own; they leave the memory of the highest over a few windows.
        self.highest = max(max(positive), 0.96 * self.highest)
        wide = SIGMAS * deviation(logs, middle)
        self.limit = max(FACTOR * self.center, BEYOND * self.highest, math.exp(min(middle + wide, 700.0)))

    def _found(self, value: float, record: Record) -> Found:
        ratio = value / self.center
        text = (
            f"{self.name} {number(value)} at {at(record)}, {ratio:.0f} times the median of the last {len(self.window)}"
        )
        return Found(
            "gradient-explosion",
            record,
            text,
            {"value": value, "median": self.center, "ratio": ratio, "limit": self.limit},
        )


class GradientVanished:
    """A norm of zero, or a thousandth of the rolling median, repeatedly, where the series had other values before.

    A streak counts if it is too long for the share of such values so far: policy gradients are zero now and then.
    """

    SMALL = 1e-3
    SHORTEST = 10
    UNLIKELY = math.log(1e-9)

    def __init__(self, name: str) -> None:
        self.name = name
        self.window: deque[float] = deque(maxlen=WINDOW)
        self.seen = self.tiny = self.streak = 0
        self.since: Record | None = None
        self.usual = 0.0
        self.told = False

    def feed(self, values: Sequence[float], records: Sequence[Record], context: Context) -> Iterator[Found]:
        """Judge a block in stretches that end where the median is taken again."""
        start = 0
        while start < len(values):
            end = min(start + EVERY - self.seen % EVERY, len(values))
            part = values[start:end]
            if min(part) > self.SMALL * self.usual and not self.streak:
                self.window.extend(part)
                self.seen += len(part)
            else:
                for value, record in zip(part, records[start:end], strict=True):
                    yield from self._one(value, record)
            start = end
            if self.seen % EVERY == 0 and self.window and not self.streak:
                self.usual = median(self.window)

    def _one(self, value: float, record: Record) -> Iterator[Found]:
        self.seen += 1
        if value > self.SMALL * self.usual:
            self.window.append(value)
            self.tiny += self.streak
            self.streak, self.since, self.told = 0, None, False
            return
        self.streak += 1
        self.since = self.since or record
        share = (self.tiny + 1) / (self.seen - self.streak + 2)
        few = self.streak < self.SHORTEST or self.seen - self.streak < WARM_UP or self.usual <= 0
        if self.told or few or self.streak * math.log(share) > self.UNLIKELY:
            return
        self.told = True
        text = (
            f"{self.name} {number(value)}, {self.streak} values in a row since {at(self.since)} "
            f"(median before: {number(self.usual)})"
        )
        numbers = {"value": value, "before": self.usual, "streak": self.streak}
        yield Found("gradient-vanished", record, text, numbers, since=self.since)
