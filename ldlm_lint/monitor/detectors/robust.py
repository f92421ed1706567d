"""Order statistics of short windows: they are insensitive to the single value being judged."""

from __future__ import annotations

from collections.abc import Sequence
from operator import sub

GAUSSIAN = 1.4826
"""The standard deviation of a normal distribution over its median absolute deviation."""


def median(values: Sequence[float]) -> float:
    """The middle of at least one value."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def deviation(values: Sequence[float], center: float) -> float:
    """The spread around a center as a standard deviation, from the median absolute deviation."""
    return GAUSSIAN * median([abs(one - center) for one in values])


def jitter(values: Sequence[float]) -> float:
    """The spread from one value to the next as a standard deviation; a trend hardly counts. 0 for less than 2 values."""
    if len(values) < 2:
        return 0.0
    return GAUSSIAN * median(list(map(abs, map(sub, values[1:], values))))


def trend_end(values: Sequence[float]) -> tuple[float, float]:
    """The level at the end of a window with a straight trend taken out, and the spread around that trend."""
    half = len(values) // 2
    early, late = median(values[:half]), median(values[-half:])
    slope = (late - early) / max(len(values) - half, 1)
    middle = (len(values) - 1) / 2
    level = (early + late) / 2
    rest = [value - level - slope * (index - middle) for index, value in enumerate(values)]
    center = median(rest)
    return level + slope * middle + center, deviation(rest, center)
