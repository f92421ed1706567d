"""The learning rate: unexpected zeros, and where it was raised or lowered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ldlm_lint.monitor.detectors.base import Context, Found, at, number
from ldlm_lint.monitor.records import Record


class LearningRate:
    """A learning rate of zero 10 times in a row that did not decay to it, or 200 times from the start.

    Schedules end at zero, and a rate printed with six decimals is zero in the first and the last steps of a schedule: a
    fall from at least a tenth of the highest rate counts. Also notes where the rate was raised to twice or lowered to
    half, since losses move there.
    """

    RUN, FROM_START, ABRUPT = 10, 200, 0.1

    def __init__(self, name: str) -> None:
        self.name = name
        self.highest = self.last = self.before = 0.0
        self.run = 0
        self.since: Record | None = None
        self.told = self.fell = False

    def feed(self, values: Sequence[float], records: Sequence[Record], context: Context) -> Iterator[Found]:
        """Judge changes of the rate; a block in which it changes by less than half is skipped."""
        low, high = min(values), max(values)
        self.fell = self.fell or low < 0.9 * self.highest
        if 0 < high < 2 * min(low, self.last) and self.last < 2 * low:
            self.highest = max(self.highest, high)
            self.last = self.before = values[-1]
            self.run, self.since, self.told = 0, None, False
            return
        for value, record in zip(values, records, strict=True):
            if value >= 2 * self.last > 0:
                context.raised.append(record.line)
                if not self.fell:
                    context.warming = record.line
            elif value <= self.last / 2 and self.last:
                context.lowered.append(record.line)
            if value:
                self.run, self.since, self.told = 0, None, False
                self.before = value
                self.highest = max(self.highest, value)
            else:
                self.run += 1
                self.since = self.since or record
                if not self.told and self._wrong():
                    self.told = True
                    yield self._found(record)
            self.last = value

    def _wrong(self) -> bool:
        if not self.highest:
            return self.run >= self.FROM_START
        return self.run >= self.RUN and self.before >= self.ABRUPT * self.highest

    def _found(self, record: Record) -> Found:
        assert self.since is not None
        before = f", {number(self.before)} before that" if self.highest else " and never had another value"
        text = f"{self.name} is 0 in {self.run} records up to {at(record)}, since {at(self.since)}{before}"
        return Found("lr-zero", record, text, {"run": self.run, "before": self.before}, since=self.since)
