"""A loss that stops falling, at scales from 25 to 1,600 records."""

from __future__ import annotations

from collections import deque
from itertools import pairwise
from typing import NamedTuple

from ldlm_lint.monitor.alarms import Level
from ldlm_lint.monitor.detectors.base import Context, Found, at, number
from ldlm_lint.monitor.detectors.robust import GAUSSIAN, median
from ldlm_lint.monitor.detectors.stretches import Stretches
from ldlm_lint.monitor.records import Record

BASE, SCALES = 25, 7
FALLS, KEEP = 3, 6
STEADY, EXPECTED, STILL = 8.0, 6.0, 0.25
"""Standard errors of a steady fall and of the fall that was to be expected, and the share of it that does not count as one."""
LEAST_KEPT, MOST_KEPT, LEAST_BEND, MOST_BEND = 0.4, 1.33, 0.5, 1.4
"""The bounds of a fall by the one before it, and of how that ratio itself changes."""
CORRELATED = 1.5
SETTLED, LONG, EARLIEST, LEARNT, GAIN = 3.0, 0.4, 400, 0.2, 0.02


class _Stretch(NamedTuple):
    """The mean of the medians of some records, its standard error, and the record it ends at."""

    level: float
    error: float
    end: Record


class _Scale:
    """Stretches of one length, each combined from two of half the length."""

    def __init__(self, length: int) -> None:
        self.length = length
        self.half: _Stretch | None = None
        self.kept: deque[_Stretch] = deque(maxlen=KEEP)

    def add(self, one: _Stretch) -> _Stretch:
        """Keep a stretch and return it."""
        self.kept.append(one)
        return one

    def pair(self, part: _Stretch) -> _Stretch | None:
        """Add a half; returns the stretch if it is complete."""
        half, self.half = self.half, part
        if half is None:
            return None
        self.half = None
        return self.add(_Stretch((half.level + part.level) / 2, (half.error**2 + part.error**2) ** 0.5 / 2, part.end))


class Plateau:
    """A loss that fell steadily over four stretches and then not at all over two: a kink, which convergence never
    shows.

    Steadily: three falls of 8 standard errors or more, each 0.4 to 1.33 times the one before, by ratios that are alike.
    They predict the next fall if the slowdown continues; a quarter of that or less counts as no fall. Exponential and
    power-law curves fall at least as far, also if they bend increasingly like an S. A learning rate that was lowered by
    half explains a kink, and so does an epoch boundary (bars show the mean of an epoch so far).

    A loss that has settled without a kink, over 40 % of the run so far, is a note: it has converged, or it is stuck.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.scales = [_Scale(BASE * 2**power) for power in range(SCALES)]
        self.bends: deque[float] = deque(maxlen=64)
        self.last: deque[float] = deque(maxlen=4)
        self.first: float | None = None
        self.seen = 0
        self.noted = False

    def judge(self, base: Stretches, context: Context) -> Found | None:
        """Judge each scale that ends with the last stretch of 25 records."""
        self.seen += BASE
        stretch: _Stretch | None = _Stretch(base.medians[-1], base.errors[-1], base.ends[-1])
        assert stretch is not None
        self._bend(stretch.level)
        for index, scale in enumerate(self.scales):
            stretch = scale.pair(stretch) if index else scale.add(stretch)
            if stretch is None:
                break
            found = self._judge(scale, context)
            if found is not None:
                return found
        return None

    def _bend(self, level: float) -> None:
        """Follow the third differences of the medians: their movement apart from a curved trend."""
        if self.first is None:
            self.first = level
        self.last.append(level)
        if len(self.last) == 4:
            a, b, c, d = self.last
            self.bends.append(abs(d - 3 * c + 3 * b - a))

    def _judge(self, scale: _Scale, context: Context) -> Found | None:
        if len(scale.kept) == KEEP and self._kink(scale, context):
            found = self._found(scale)
            # The other lengths would see the same kink again.
            for one in self.scales:
                one.kept.clear()
                one.half = None
            return found
        if not self.noted and len(scale.kept) == KEEP and self._settled(scale):
            self.noted = True
            return self._note(scale)
        return None

    def _error(self, scale: _Scale) -> float:
        """The standard error of a fall: by the noise from value to value, and by the drift of the medians."""
        bends = list(self.bends)[-max(2 * KEEP, KEEP * scale.length // BASE) :]
        wander = GAUSSIAN * median(bends) / 20**0.5 / (scale.length / BASE) ** 0.5 if bends else 0.0
        noise = max(one.error for one in scale.kept)
        # Where the medians move by more than their errors, neighbours move together.
        return float(max(noise, wander if wander < CORRELATED * noise else 4 * wander) * 2**0.5)

    def _kink(self, scale: _Scale, context: Context) -> bool:
        falls = [before.level - after.level for before, after in pairwise(scale.kept)]
        steady, now = falls[:FALLS], falls[-1]
        if min(steady) <= 0 or abs(now) > STILL * steady[-1]:
            return False
        first, second = (after / before for before, after in pairwise(steady))
        bend = second / first
        if not (
            min(first, second) >= LEAST_KEPT and max(first, second) <= MOST_KEPT and LEAST_BEND <= bend <= MOST_BEND
        ):
            return False
        kept, bend = min(second, 1.0), min(bend, 1.0)
        expected = steady[-1] * (kept * bend) * (kept * bend**2)
        error = self._error(scale)
        if min(steady) < STEADY * error or expected < EXPECTED * error or abs(now) > STILL * expected:
            return False
        start, end = scale.kept[0].end.line, scale.kept[-1].end.line
        # The mean of an epoch so far is not one series over epochs.
        return not Context.within(context.lowered, start, end) and not Context.within(context.marks, start, end)

    def _found(self, scale: _Scale) -> Found:
        levels, since, end = [one.level for one in scale.kept], scale.kept[FALLS].end, scale.kept[-1].end
        text = (
            f"{self.name} stays at {number(levels[-1])} since {at(since)}; it fell by "
            f"{number(levels[FALLS - 1] - levels[FALLS])} in the {scale.length} records before"
        )
        numbers = {"level": levels[-1], "before": levels[0], "records": scale.length}
        return Found("plateau", end, text, numbers, since=since)

    def _settled(self, scale: _Scale) -> bool:
        """Whether a large part of the run brought no gain, after a large gain."""
        if self.seen < EARLIEST or KEEP * scale.length < LONG * self.seen or self.first is None:
            return False
        levels = [one.level for one in scale.kept]
        gained = self.first - levels[-1]
        if gained < LEARNT * abs(self.first) or abs(levels[0] - levels[-1]) > GAIN * gained:
            return False
        error = self._error(scale)
        return gained > STEADY * error and max(levels) - min(levels) <= SETTLED * error

    def _note(self, scale: _Scale) -> Found:
        level, since, end = scale.kept[-1].level, scale.kept[0].end, scale.kept[-1].end
        text = (
            f"{self.name} stays around {number(level)} since {at(since)}, {(KEEP - 1) * scale.length} records: "
            "it has converged or is stuck"
        )
        numbers = {"level": level, "records": (KEEP - 1) * scale.length}
        return Found("plateau", end, text, numbers, Level.INFO, since=since)
