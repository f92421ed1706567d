"""Throughput that drops, and the share of a step that waits for data."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterator, Sequence

from ldlm_lint.monitor.detectors.base import Context, Found, at, number
from ldlm_lint.monitor.detectors.robust import median
from ldlm_lint.monitor.records import Record


class ThroughputDrop:
    """The median of the last 10 rates below 0.7 of the median of the 200 before them, and 9 of the 10 below 0.85.

    A series that scatters needs more: the median of 10 has to lie 6 of its own standard errors lower, and where one rate
    in 20 is as low as that anyway (short and long samples), it takes 30 rates. Single slow steps
    (evaluation, a checkpoint, the first batch of an epoch, a compilation) never move a median of 10. After an alarm the
    lower rate is the new baseline.

    ``inverse`` says that the series are seconds per step.
    """

    BLOCK, LONG, BASE, EVERY, FEWEST, SKIP = 10, 30, 200, 40, 30, 5
    DROP, MOST, AGREE, COMMON = 0.70, 0.85, 0.9, 0.05

    def __init__(self, name: str, *, inverse: bool = False) -> None:
        self.name, self.inverse = name, inverse
        self.window: deque[float] = deque(maxlen=self.BASE + self.LONG)
        self.records: deque[Record] = deque(maxlen=self.LONG)
        self.count = -self.SKIP
        self.center, self.limit = 0.0, 0.0
        self.block = self.BLOCK

    def feed(self, values: Sequence[float], records: Sequence[Record], context: Context) -> Iterator[Found]:
        """Judge a block in stretches that end where the baseline is taken anew."""
        if self.inverse:
            values = [1 / value if value > 0 else 0.0 for value in values]
        start = min(max(-self.count, 0), len(values))
        self.count += start
        while start < len(values):
            end = min(start + self.EVERY - self.count % self.EVERY, len(values))
            if min(values[start:end]) >= self.limit:
                self.window.extend(values[start:end])
                self.records.extend(records[start:end])
            else:
                for value, record in zip(values[start:end], records[start:end], strict=True):
                    self.window.append(value)
                    self.records.append(record)
                    if value < self.limit and self._dropped():
                        yield self._found(record)
            self.count += end - start
            start = end
            if self.count % self.EVERY == 0:
                self._set()

    def _set(self) -> None:
        base = sorted(list(self.window)[: -self.BLOCK])
        base = base[bisect_right(base, 0.0) :]
        if len(base) < self.FEWEST:
            return
        # Half the distance of the 16th and the 84th percentile is a standard deviation, here on a logarithmic scale.
        spread = math.log(base[int(0.84 * len(base))] / base[int(0.16 * len(base))]) / 2
        self.center = base[len(base) // 2]
        self.limit = self.center * min(self.DROP, math.exp(-6 * 1.2533 * spread / self.BLOCK**0.5))
        common = bisect_left(base, self.MOST * self.center) > self.COMMON * len(base)
        self.block = self.LONG if common else self.BLOCK

    def _dropped(self) -> bool:
        last = list(self.window)[-self.block :]
        low = sum(one < self.MOST * self.center for one in last)
        return low >= self.AGREE * self.block and median(last) < self.limit

    def _found(self, record: Record) -> Found:
        last = list(self.window)[-self.block :]
        now, before = median(last), self.center
        shown = (1 / now if now else math.inf, 1 / before) if self.inverse else (now, before)
        places = list(self.records)[-self.block :]
        since = next((place for value, place in zip(last, places, strict=True) if value < self.MOST * before), record)
        text = (
            f"{self.name} {number(shown[0])} at {at(record)} (median of {self.block}), before {number(shown[1])}: "
            f"{now / before - 1:+.0%} speed"
        )
        self.window.clear()
        self.limit = 0.0
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
