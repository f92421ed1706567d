"""One quantity of two runs, side by side: records that only one has, and both cut into the same stretches."""

from __future__ import annotations

import math
import statistics
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from ldlm_lint.monitor.detectors.order import begins_anew
from ldlm_lint.monitor.series import Curve

Place = tuple[int, int]
"""How often the steps began anew before (epochs whose steps count from zero), and the step."""
ROUNDS = 40
_COMMON = 0.5
"""Share of the shorter run's records at whose steps the other one must have a record, to be compared step by step."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """The finite values of both runs between two places, of at least one record each."""

    first: Place
    last: Place
    a: tuple[float, ...]
    b: tuple[float, ...]

    @property
    def medians(self) -> tuple[float, float]:
        """The middle of each run's values."""
        return statistics.median(self.a), statistics.median(self.b)


class Points:
    """A series by place. A repeated step after a restart replaces the earlier value."""

    def __init__(self, curve: Curve) -> None:
        self.values = {(turn, step): value for turn, one in enumerate(_turns(curve)) for step, value in one.items()}
        self.whole = curve.stride == 1
        self.numbered = curve.numbered
        self.places = sorted(self.values)
        gaps = sorted(b[1] - a[1] for a, b in pairwise(self.places) if a[0] == b[0])
        self.interval = max(gaps[len(gaps) // 2], 1) if gaps else 1
        self.longest = gaps[int(0.95 * (len(gaps) - 1))] if gaps else 1
        self.broken = [one for one in self.places if not math.isfinite(self.values[one])]
        self.count = len(self.places) if self.whole else curve.count + curve.nonfinite
        self.lost = len(self.broken) if self.whole else curve.nonfinite

    @property
    def regular(self) -> bool:
        """Whether records come at the same interval, unlike those of a progress bar, which is drawn by the clock."""
        return self.longest <= 2 * self.interval

    def name(self, place: Place) -> str:
        """A place as text: ``step 400``."""
        turn = f"pass {place[0] + 1}, " if self.places[-1][0] else ""
        return f"{turn}{'step' if self.numbered else 'record'} {place[1]}"

    def span(self, first: Place, last: Place) -> str:
        """Two places as text: ``step 400 to 599``."""
        return f"{self.name(first)} to {last[1] if first[0] == last[0] else self.name(last)}"


def _turns(curve: Curve) -> list[dict[int, float]]:
    """The values by step, each time that the steps began again; an attempt that was soon started over does not
    count.
    """
    turns: list[dict[int, float]] = [{}]
    low, last = curve.steps[0], -1
    for step, value in zip(curve.steps, curve.values, strict=True):
        if step < last and begins_anew(step, last, low):
            turns.append({})
        last = step
        turns[-1][step] = value
    far = max(map(max, turns)) / 2
    return [one for one in turns[:-1] if max(one) >= far] + turns[-1:]


class Aligned:
    """Two series restricted to common records: at their common steps, or else by stretches of steps."""

    def __init__(self, a: Curve, b: Curve) -> None:
        self.a, self.b = Points(a), Points(b)
        mine, theirs = self.a.values.keys(), self.b.values.keys()
        self.common = sorted(mine & theirs)
        first = max(self.a.places[0], self.b.places[0])
        last = min(self.a.places[-1], self.b.places[-1])
        self.only_a = [one for one in self.a.places if first <= one <= last and one not in theirs]
        self.only_b = [one for one in self.b.places if first <= one <= last and one not in mine]
        fewest = min(len(self.common) + len(self.only_a), len(self.common) + len(self.only_b))
        self.paired = bool(self.common) and len(self.common) >= _COMMON * fewest
        self._range = first, last

    @property
    def apart(self) -> bool:
        """Whether one run ended before the other began."""
        return self._range[0] > self._range[1]

    @property
    def same(self) -> bool:
        """Whether all common steps have the same values, including non-finite ones."""
        pairs = ((self.a.values[one], self.b.values[one]) for one in self.common)
        return bool(self.common) and self.paired and all(x == y or (x != x and y != y) for x, y in pairs)

    @property
    def same_numbers(self) -> int:
        """The number of common steps where both print a number, if all are equal; else 0."""
        pairs = [(self.a.values[one], self.b.values[one]) for one in self.common]
        numbers = [(x, y) for x, y in pairs if math.isfinite(x) and math.isfinite(y)]
        return len(numbers) if self.paired and all(x == y for x, y in numbers) else 0

    def late(self, part: int) -> tuple[list[float], list[float]] | None:
        """Both runs' values at the last ``1 / part`` of the common steps, if one of them is not a number there."""
        places = self.common[-max(len(self.common) // part, 1) :] if self.paired else []
        a, b = ([points.values[one] for one in places] for points in (self.a, self.b))
        return None if all(map(math.isfinite, a + b)) else (a, b)

    def stretches(self, skip: float = 0.0, positive: bool = False) -> list[Stretch]:
        """Both runs in at most 40 stretches, without a share of the records at the start."""
        kept_a, kept_b = self._kept(self.a, positive), self._kept(self.b, positive)
        if self.paired:
            kept_a = kept_b = sorted(set(kept_a) & set(kept_b))
        fewer = min(kept_a, kept_b, key=len)
        fewer = fewer[int(skip * len(fewer)) :]
        rounds = min(ROUNDS, len(fewer))
        edges = [round(index * len(fewer) / rounds) for index in range(rounds + 1)] if rounds else []
        found: list[Stretch] = []
        before = (fewer[0][0], fewer[0][1] - 1) if fewer else (0, 0)
        for start, stop in pairwise(edges):
            first, last = fewer[start], fewer[stop - 1]
            a, b = _between(self.a, kept_a, before, last), _between(self.b, kept_b, before, last)
            if a and b:
                found.append(Stretch(first, last, a, b))
            before = last
        return found

    def _kept(self, points: Points, positive: bool) -> list[Place]:
        first, last = self._range
        every = points.values
        return [
            one
            for one in points.places
            if first <= one <= last and math.isfinite(every[one]) and (every[one] > 0 or not positive)
        ]


def _between(points: Points, kept: Sequence[Place], before: Place, end: Place) -> tuple[float, ...]:
    return tuple(points.values[one] for one in kept[bisect_right(kept, before) : bisect_right(kept, end)])
