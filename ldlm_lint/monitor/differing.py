"""Whether and where two runs differ, from their stretches: throughout, in a part of the run, or in total time.

``r`` is the logarithm of B over A by the medians of a stretch. Chance is estimated from the same values: the largest
movement of ``r`` from one stretch to the next and to those 2, 4 and 8 later, so that slow drifts of a machine or of a
loss count as noise, while a change of level in a part of the run hardly does.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from ldlm_lint.evidence.statistics import RESAMPLES, Ratio, band, paired_ratio
from ldlm_lint.monitor.aligned import Stretch
from ldlm_lint.monitor.detectors.robust import GAUSSIAN, median

FEWEST = 15
_LAGS = (1, 2, 4, 8)
_SIGMAS = 6.0
_WIDTHS = (3, 8)
"""A part is a third or an eighth of the run at least."""
_ALL = 0.8
"""Share of the run from which on a difference is one of the whole run."""
_TOTAL, _ONCE = 1.10, 1.5
"""Total times that differ: by a tenth and by more than chance, or by half whatever made it, a single pause included."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the run in which B differs from A: from stretch ``start`` to before ``end``."""

    start: int
    end: int
    a: float
    b: float
    change: float
    """The logarithm of B over A, or the difference in spreads where a ratio cannot be formed."""


def changes(stretches: Sequence[Stretch]) -> tuple[list[float], bool]:
    """The difference of B from A in each stretch, and whether it is a logarithm of ratios; else it is in spreads
    between values."""
    pairs = [one.medians for one in stretches]
    if all(a >= 0 and b >= 0 for a, b in pairs):
        # A loss that reached 0.000 has lost its last digit, not its logarithm.
        digit = min((v for one in stretches for v in (*one.a, *one.b) if v > 0), default=1.0)
        least = 0.0 if all(a > 0 and b > 0 for a, b in pairs) else digit
        return [math.log((b + least) / (a + least)) for a, b in pairs], True
    spread = max(_spread([v for one in stretches for v in one.a]), _spread([v for one in stretches for v in one.b]))
    return [(b - a) / spread if spread else 0.0 for a, b in pairs], False


def _spread(values: Sequence[float]) -> float:
    middle = statistics.median(values)
    return GAUSSIAN * statistics.median([abs(one - middle) for one in values])


def chance(moves: Sequence[float]) -> float:
    """The standard deviation of one stretch, drifts included."""
    found = [0.0]
    for lag in _LAGS:
        if 2 * lag < len(moves):
            found.append(GAUSSIAN / 2**0.5 * median([abs(b - a) for a, b in zip(moves, moves[lag:], strict=False)]))
    return max(found)


def _error(stretch: Stretch, positive: bool) -> float:
    """The standard error of B over A in one stretch, from the ranks around the middle.

    Where short and long samples alternate, there are two groups of values, and the median jumps between them.
    """
    if not positive:
        return 0.0
    sides = []
    for side in (stretch.a, stretch.b):
        ordered, half = sorted(side), len(side) ** 0.5 / 2
        middle = (len(side) - 1) / 2
        low, high = ordered[max(math.floor(middle - half), 0)], ordered[min(math.ceil(middle + half), len(side) - 1)]
        sides.append(math.log(high / low) / 2 if low > 0 else 0.0)
    return math.hypot(*sides)


def part(stretches: Sequence[Stretch], least: float) -> Part | None:
    """The part of the run in which B is farthest from A, if that is beyond ``least`` and beyond chance."""
    moves, positive = changes(stretches)
    errors = [_error(one, positive) for one in stretches]
    noise, best = chance(moves), (0.0, 0, 0)
    for width in {max(len(moves) // share, 3) for share in _WIDTHS}:
        for start in range(len(moves) - width + 1):
            level = abs(median(moves[start : start + width]))
            if level < least or level <= best[0]:
                continue
            own = (sum(one * one for one in errors[start : start + width]) / width) ** 0.5
            if level >= max(_SIGMAS / width**0.5, 2.0) * max(noise, own):
                best = level, start, start + width
    if not best[0]:
        # A change at the very end is not complete: two stretches are enough, with the full distance.
        level = min(map(abs, moves[-2:]))
        if moves[-2] * moves[-1] > 0 and level >= max(least, _SIGMAS * max(noise, *errors[-2:])):
            best = level, len(moves) - 2, len(moves)
    level, start, end = best
    if not level:
        return None
    half, sign = level / 2, math.copysign(1.0, median(moves[start:end]))
    # One stretch in between may look like chance.
    while start and max(sign * moves[start - 1], sign * median(moves[max(start - 3, 0) : start])) > half:
        start -= 1
    while end < len(moves) and max(sign * moves[end], sign * median(moves[end : end + 3])) > half:
        end += 1
    while start < end - 1 and sign * moves[start] <= half:
        start += 1
    while end > start + 1 and sign * moves[end - 1] <= half:
        end -= 1
    if end - start >= _ALL * len(moves):
        return None
    inside = [one.medians for one in stretches[start:end]]
    a, b = (statistics.median(side) for side in zip(*inside, strict=True))
    return Part(start, end, a, b, statistics.median(moves[start:end]))


def total(stretches: Sequence[Stretch], inverse: bool) -> tuple[float, float, bool]:
    """The mean seconds of a step in A and B (for rates, of a unit of work), and whether the totals differ."""
    times = [
        tuple(statistics.fmean([1 / v if inverse else v for v in side]) for side in (one.a, one.b)) for one in stretches
    ]
    weights = [len(one.a) for one in stretches]
    a, b = (sum(one[side] * n for one, n in zip(times, weights, strict=True)) / sum(weights) for side in (0, 1))
    if len(times) < FEWEST:
        return a, b, False
    draw, drawn = random.Random(0), []
    for _ in range(RESAMPLES // 4):
        chosen = draw.choices(times, k=len(times))
        drawn.append(math.log(sum(one[1] for one in chosen) / sum(one[0] for one in chosen)))
    drawn.sort()
    low, high = drawn[int(0.005 * len(drawn))], drawn[int(0.995 * len(drawn))]
    sure = max(low, -high) > 0 and max(b / a, a / b) >= _TOTAL
    return a, b, sure or max(b / a, a / b) >= _ONCE


def self_band(stretches: Sequence[Stretch]) -> float:
    """How far a run is from itself: odd stretches against even ones, the worse of both runs."""
    sides = ([one.medians[side] for one in stretches] for side in (0, 1))
    return max(band(paired_ratio(one[::2][: len(one) // 2], one[1::2])) for one in sides)


def ratio_of(stretches: Sequence[Stretch]) -> tuple[Ratio, Ratio]:
    """B over A and A over B, by the medians of the stretches."""
    a, b = ([one.medians[side] for one in stretches] for side in (0, 1))
    return paired_ratio(b, a), paired_ratio(a, b)
