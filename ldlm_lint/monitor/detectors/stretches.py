"""A series as the medians of equal stretches, which single values and noise hardly change."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from ldlm_lint.monitor.detectors.robust import jitter, median
from ldlm_lint.monitor.records import Record


class Stretches:
    """Medians and standard errors of stretches of ``length`` points, and the records that they end at."""

    def __init__(self, length: int, keep: int) -> None:
        self.length = length
        self.open: list[float] = []
        self.medians: deque[float] = deque(maxlen=keep)
        self.errors: deque[float] = deque(maxlen=keep)
        self.ends: deque[Record] = deque(maxlen=keep)

    def feed(self, values: Sequence[float], records: Sequence[Record]) -> Iterator[None]:
        """Take values in, and pause at the end of each stretch."""
        start = 0
        while start < len(values):
            end = min(start + self.length - len(self.open), len(values))
            self.open.extend(values[start:end])
            if len(self.open) == self.length:
                middle = median(self.open)
                self.medians.append(middle)
                # 1.25 sigma / sqrt(n) is the standard error of a median; the noise from value to value has no trend.
                self.errors.append(1.2533 * jitter(self.open) / self.length**0.5)
                self.ends.append(records[end - 1])
                self.open = []
                yield
            start = end
