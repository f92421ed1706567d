"""Throughput that drops, and the share of a step that waits for data."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterator, Sequence

from ldlm_lint.monitor.detectors.base import Context, Found, at, number
from ldlm_lint.monitor.detectors.robust import median
from ldlm_lint.monitor.detectors.slowdown import Slowdown
from ldlm_lint.monitor.records import Record


class ThroughputDrop:
    """The median of the last 10 rates below 0.7 of the median of the 200 before them, and 9 of the 10 below 0.85.

    A scattered series needs more: the median of 10 must be 6 of its own standard errors lower, and if one rate in 20 is
    as low as that anyway, or three in a row were (short and long samples, an evaluation), it takes 40 rates. Single
    slow steps (a checkpoint, the first batch of an epoch, a compilation) never move a median of 10. An epoch that
    begins as slowly as an earlier stretch was is not reported: its samples may be sorted. After an alarm the lower rate
    is the new baseline. Smaller lasting drops take longer to detect (see `Slowdown`).

    ``inverse`` says that the series are seconds per step.
    """

    BLOCK, LONG, BASE, EVERY, FEWEST, SKIP = 10, 40, 200, 40, 30, 5
    DROP, MOST, AGREE, COMMON, ROW, BEFORE = 0.70, 0.85, 0.9, 0.05, 3, 0.9

    def __init__(self, name: str, *, inverse: bool = False) -> None:
        self.name, self.inverse = name, inverse
        self.window: deque[float] = deque(maxlen=self.BASE + self.LONG)
        self.records: deque[Record] = deque(maxlen=self.LONG)
        self.count = -self.SKIP
        self.center, self.limit = 0.0, 0.0
        self.block = self.BLOCK
        self.slowest = math.inf
        self.slowdown = Slowdown()

    def feed(self, values: Sequence[float], records: Sequence[Record], context: Context) -> Iterator[Found]:
        """Judge a block by its last rates, and by levels that last."""
        if self.inverse:
            values = [1 / value if value > 0 else 0.0 for value in values]
        start = min(max(-self.count, 0), len(values))
        self.count += start
        for end, found in self._sudden(values, records, start, context):
            yield from self._lasting(values[start:end], records[start:end], context)
            self.slowdown.clear()
            start = end
            yield found
        yield from self._lasting(values[start:], records[start:], context)

    def _lasting(self, values: Sequence[float], records: Sequence[Record], context: Context) -> Iterator[Found]:
        for drop in self.slowdown.feed(values, records, context):
            yield self._said(*drop)

    def _sudden(
        self, values: Sequence[float], records: Sequence[Record], start: int, context: Context
    ) -> Iterator[tuple[int, Found]]:
        """Judge in stretches that end where the baseline is reset; each drop with the number of values."""
        while start < len(values):
            end = min(start + self.EVERY - self.count % self.EVERY, len(values))
            if min(values[start:end]) >= self.limit:
                self.window.extend(values[start:end])
                self.records.extend(records[start:end])
            else:
                for index in range(start, end):
                    self.window.append(values[index])
                    self.records.append(records[index])
                    if values[index] < self.limit and self._dropped(context):
                        yield index + 1, self._found(records[index])
            self.count += end - start
            start = end
            if self.count % self.EVERY == 0:
                self._set()

    def _set(self) -> None:
        kept = list(self.window)
        if len(kept) >= self.EVERY:
            self.slowest = min(self.slowest, median(kept[-self.EVERY :]))
        base = sorted(kept[: -self.BLOCK])
        base = base[bisect_right(base, 0.0) :]
        if len(base) < self.FEWEST:
            return
        # Half the distance of the 16th and the 84th percentile is a standard deviation, here on a logarithmic scale.
        spread = math.log(base[int(0.84 * len(base))] / base[int(0.16 * len(base))]) / 2
        self.center = base[len(base) // 2]
        self.limit = self.center * min(self.DROP, math.exp(-6 * 1.2533 * spread / self.BLOCK**0.5))
        low = self.MOST * self.center
        number = bisect_left(base, low)
        row = number > self.ROW and any(
            max(kept[index : index + self.ROW]) < low for index in range(len(kept) - self.BLOCK - self.ROW)
        )
        common = number > self.COMMON * len(base) or (number > self.ROW and len(base) < self.BASE // 2)
        self.block = self.LONG if row or common else self.BLOCK

    def _dropped(self, context: Context) -> bool:
        last = list(self.window)[-self.block :]
        low = sum(one < self.MOST * self.center for one in last)
        if low < self.AGREE * self.block or median(last) >= self.limit:
            return False
        began, now = self.records[0].line, self.records[-1].line
        # If samples are sorted, each epoch begins as slowly as the one before it.
        return median(last) < self.BEFORE * self.slowest or not Context.within(context.marks, began, now)

    def _found(self, record: Record) -> Found:
        last = list(self.window)[-self.block :]
        places = list(self.records)[-self.block :]
        low = self.MOST * self.center
        since = next((place for value, place in zip(last, places, strict=True) if value < low), record)
        self.window.clear()
        self.limit = 0.0
        return self._said(median(last), self.center, since, record, self.block)

    def _said(self, now: float, before: float, since: Record, record: Record, count: int) -> Found:
        shown = (1 / now if now else math.inf, 1 / before) if self.inverse else (now, before)
        unit = " s" if self.inverse else ""
        text = (
            f"{self.name} {number(shown[0])}{unit} at {at(record)} (median of {count}), before {number(shown[1])}{unit}: "
            f"{now / before - 1:+.0%} speed"
        )
        numbers = {"now": shown[0], "before": shown[1], "ratio": now / before}
        return Found("throughput-drop", record, text, numbers, since=since)


class LoaderStall:
    """A quarter of the step time or more spent waiting for data, by the median of 50 records.

    Its values are the shares. The first records, in which workers start, do not count. Told once, and again when the
    share has been below half of the limit in between.
    """

    SHARE, WINDOW, SKIP = 0.25, 50, 5

    def __init__(self) -> None:
        self.window: deque[float] = deque(maxlen=self.WINDOW)
        self.skip = self.SKIP
        self.count = 0
        self.told = False

    def feed(self, values: Sequence[float], records: Sequence[Record], context: Context) -> Iterator[Found]:
        """Judge the share every 10 records."""
        for value, record in zip(values, records, strict=True):
            if self.skip:
                self.skip -= 1
                continue
            self.window.append(value)
            self.count += 1
            if len(self.window) < self.WINDOW or self.count % 10:
                continue
            share = median(self.window)
            if share >= self.SHARE and not self.told:
                self.told = True
                text = f"{share:.0%} of the step time is waiting for data (median of {self.WINDOW} records up to {at(record)})"
                yield Found("loader-stall", record, text, {"share": share, "records": self.WINDOW})
            elif share < self.SHARE / 2:
                self.told = False
