"""Speed that drops by a sixth or more at once and stays there, which a window of ten rates cannot distinguish from
chance."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ldlm_lint.monitor.detectors.base import Context
from ldlm_lint.monitor.detectors.robust import GAUSSIAN, jitter, median
from ldlm_lint.monitor.records import Record

BLOCK, FACTORS = 10, (1, 2, 4)
AFTER, BEFORE, FEWEST = 6, 12, 6
DROP, SIGMAS, APART = 0.86, 7.0, 0.5
"""The largest ratio that is a drop; standard errors; and how far from the other side, as a share of the drop, all but one of
the blocks of a side have to lie."""
NEAR, SUDDEN, TREND, TREND_SIGMAS = 3, 0.7, 0.65, 3.5
"""The blocks next to the change and the share of the drop between them; the share that no trend explains, and the
same in spreads of a block."""
SLOWER, THIRD, OFTEN = 0.95, 2, 0.25
FAR, NEAR_LOW = 0.75, 0.25
"""Where speed drops to less than ``FAR``, a block has slow rates if they come as near as that to the new level."""


class _Level(NamedTuple):
    """The level of a block, and that of the slower ones in it: the middle and the third lowest of ten rates."""

    rate: float
    slow: float
    end: Record


class Drop(NamedTuple):
    """A lasting drop of speed: rates now and before, where it began, where it became certain, and the number of
    rates.
    """

    now: float
    before: float
    since: Record
    record: Record
    rates: int


class Slowdown:
    """A lasting drop: the median of the last 6 blocks against up to 12 blocks before them, in blocks of 10, 20 and 40
    rates.

    Both sides must be level and separate, with the drop between them: speed that drifts during the day, slows down
    until garbage collection, is slow briefly (an evaluation, other jobs) or alternates between short and long samples
    does not match. The block in between, in which it happens, is left out.
    """

    def __init__(self) -> None:
        self.rates: list[float] = []
        self.scales = [_Blocks(factor) for factor in FACTORS]

    def clear(self) -> None:
        """Reset: the lower rate is the new baseline."""
        self.rates = []
        for one in self.scales:
            one.clear()

    def feed(self, values: Sequence[float], records: Sequence[Record], context: Context) -> Iterator[Drop]:
        """Take rates in and judge at the end of each block."""
        start = 0
        while start < len(values):
            end = min(start + BLOCK - len(self.rates), len(values))
            self.rates.extend(values[start:end])
            start = end
            if len(self.rates) < BLOCK:
                return
            ordered = sorted(self.rates)
            level = _Level((ordered[BLOCK // 2 - 1] + ordered[BLOCK // 2]) / 2, ordered[THIRD], records[end - 1])
            self.rates = []
            for scale in self.scales:
                drop = scale.dropped(context) if scale.add(level) else None
                if drop is not None:
                    yield drop
                    self.clear()
                    break


class _Blocks:
    """The levels of blocks of ``factor`` times ten rates."""

    def __init__(self, factor: int) -> None:
        self.factor = factor
        self.parts: list[_Level] = []
        self.kept: deque[_Level] = deque(maxlen=BEFORE + 1 + AFTER)
        # The slowest that two blocks in a row were, before those that are kept.
        self.slowest = math.inf

    def clear(self) -> None:
        self.parts = []
        self.kept.clear()
        self.slowest = math.inf

    def add(self, level: _Level) -> bool:
        """Take ten rates in; whether a block is full."""
        if self.factor > 1:
            self.parts.append(level)
            if len(self.parts) < self.factor:
                return False
            rate = sum([one.rate for one in self.parts]) / self.factor
            level = _Level(rate, sum([one.slow for one in self.parts]) / self.factor, level.end)
            self.parts = []
        kept = self.kept
        if len(kept) == BEFORE + 1 + AFTER:
            self.slowest = min(self.slowest, max(kept[0].rate, kept[1].rate))
        kept.append(level)
        return True

    def dropped(self, context: Context) -> Drop | None:
        """The lasting drop; None if there is none."""
        kept = self.kept
        if len(kept) < FEWEST + 1 + AFTER or kept[-1].rate > DROP * kept[0].rate:
            return None
        levels = [one.rate for one in kept]
        before, after = levels[: -AFTER - 1], levels[-AFTER:]
        high, low = median(before), median(after)
        if low > DROP * high or low <= 0 or not _sudden(before, after, high - low, self._inside()):
            return None
        limit = low if low > FAR * high else low + NEAR_LOW * (high - low)
        slow = sum(one.slow <= limit for one in list(kept)[: len(before)])
        if slow > OFTEN * len(before) or self._as_before(before, low, context):
            return None
        return Drop(low, high, kept[-AFTER - 1].end, kept[-1].end, BLOCK * self.factor * AFTER)

    def _inside(self) -> float:
        """The standard error of a block from its rates: the third lowest of ten lies 0.656 deviations below their
        middle."""
        spread = sum(one.rate - one.slow for one in self.kept) / len(self.kept) / 0.656
        return 1.2533 * spread / (BLOCK * self.factor) ** 0.5

    def _as_before(self, before: list[float], low: float, context: Context) -> bool:
        """Whether an epoch began with samples as long as there were some before."""
        kept = self.kept
        first = kept[max(len(kept) - AFTER - 4, 0)].end.line
        if not Context.within(context.marks, first, kept[-AFTER + 1].end.line):
            return False
        slowest = min([self.slowest, *map(max, before[:-NEAR], before[1:-NEAR])])
        return low >= SLOWER * slowest


def _sudden(before: list[float], after: list[float], drop: float, noise: float) -> bool:
    """Whether both sides are separate except for one block each, and neither chance nor a trend explains the
    difference."""
    high, low = median(before), median(after)
    middle = high - APART * drop
    if sorted(before)[1] < middle or sorted(after)[-2] > middle:
        return False
    if median(before[-NEAR:]) - median(after[:NEAR]) < SUDDEN * drop:
        return False
    noise = max(
        noise,
        GAUSSIAN * median([abs(one - high) for one in before] + [abs(one - low) for one in after]),
        jitter(before),
    )
    if drop < SIGMAS * noise * (1 / len(before) + 1 / len(after)) ** 0.5:
        return False
    falls = length = 0.0
    for side in (before, after):
        half = len(side) // 2
        falls += median(side[:half]) - median(side[-half:])
        length += len(side) - half
    trend = falls / length * ((len(before) + len(after)) / 2 + 1)
    return drop - max(trend, 0.0) >= max(TREND * drop, TREND_SIGMAS * noise)
