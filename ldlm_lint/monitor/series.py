"""Series in constant memory: a quantity over a whole run as counts, extremes and evenly spaced points."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice, pairwise

from ldlm_lint.monitor.records import Column, Record, Template

CAPACITY = 1024
_TICKS = "▁▂▃▄▅▆▇█"


@dataclass(slots=True)
class Curve:
    """A series of any length as at most `capacity` of its points, each `stride`-th one, and exact counts and extremes.

    Non-finite values are counted, and kept only with ``broken``, at their positions. ``steps`` and ``values`` belong
    together; ``numbered`` says that the records have their own steps and not only an index in the series.
    """

    capacity: int = CAPACITY
    broken: bool = False
    numbered: bool = True
    count: int = 0
    stride: int = 1
    nonfinite: int = 0
    first: float = math.nan
    last: float = math.nan
    low: float = math.inf
    high: float = -math.inf
    steps: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)

    def extend(self, values: Sequence[float], records: Sequence[Record]) -> None:
        """Add finite values with their records; a record without a step counts as its index."""
        if not values:
            return
        if not self.count:
            self.first = values[0]
        self.last = values[-1]
        self.low, self.high = min(self.low, min(values)), max(self.high, max(values))
        seen = self.count + self.nonfinite
        start = -seen % self.stride
        index = seen + start
        self.numbered = self.numbered and records[0].step is not None
        for value, record in zip(
            islice(values, start, None, self.stride), islice(records, start, None, self.stride), strict=True
        ):
            self.values.append(value)
            self.steps.append(index if record.step is None else record.step)
            index += self.stride
        self.count += len(values)
        self._thin()

    def take(self, values: Sequence[float], records: Sequence[Record]) -> None:
        """Take values in of which some are not finite."""
        for value, record in zip(values, records, strict=True):
            if math.isfinite(value):
                self.extend([value], [record])
                continue
            seen = self.count + self.nonfinite
            if self.broken and not seen % self.stride:
                self.values.append(value)
                self.steps.append(seen if record.step is None else record.step)
                self._thin()
            self.nonfinite += 1

    def _thin(self) -> None:
        while len(self.values) > self.capacity:
            self.values, self.steps = self.values[::2], self.steps[::2]
            self.stride *= 2

    @property
    def median(self) -> float:
        """The median of the kept points: exact up to `capacity` values."""
        return statistics.median(self.values) if self.values else math.nan

    def sparkline(self, width: int = 24) -> str:
        """The course of the series in ``width`` signs, the medians of equal stretches."""
        if not self.values:
            return ""
        cells = [statistics.median(part) for part in _parts(self.values, width)]
        low, high = min(cells), max(cells)
        if high <= low:
            return _TICKS[3] * len(cells)
        return "".join(_TICKS[min(int((one - low) / (high - low) * len(_TICKS)), len(_TICKS) - 1)] for one in cells)


def _parts(values: Sequence[float], most: int) -> list[Sequence[float]]:
    count = min(most, len(values))
    edges = [round(index * len(values) / count) for index in range(count + 1)]
    return [values[start:end] for start, end in pairwise(edges)]


@dataclass(frozen=True, slots=True)
class SeriesKey:
    """The key of a series: one file, rank, process, line template and column."""

    source: str
    rank: int | None
    actor: str
    template: Template
    column: int

    @property
    def named(self) -> Column:
        """The column that the values are from."""
        return self.template.columns[self.column]

    @property
    def label(self) -> str:
        """The series as text, with the key as in the log: ``loss (lm loss) [train] rank 0``."""
        column = self.named
        return self._words(column.raw if column.key in ("", column.raw) else f"{column.key} ({column.raw})")

    @property
    def short(self) -> str:
        """The series as text, without the log's key if it has a canonical one."""
        return self._words(self.named.key or self.named.raw)

    def _words(self, name: str) -> str:
        words = [name]
        if self.template.split:
            words.append(f"[{self.template.split}]")
        if self.rank is not None:
            words.append(f"rank {self.rank}")
        if self.actor:
            words.append(self.actor)
        return " ".join(words)
