"""Ratios with their 95 % intervals as a chart: one strip for each, above one logarithmic axis.

`templates/intervals.html` draws them. Places are percentages of the width, as in `charts`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ldlm_lint.report.html.charts import Scale, Tick, percent, scale

_NARROWEST = 1.12
_FARTHEST = 1e4
_MARGIN = 0.04


@dataclass(frozen=True, slots=True)
class Interval:
    """A ratio and its 95 % interval, the ratio (at least 1) between equal programs (A/A), and the thresholds.

    ``bars`` are the least differences that count; ``text`` is the figure as text, ``tone`` a class for its colour:
    ``good``, ``bad`` or ``open``.
    """

    label: str
    value: float
    low: float
    high: float
    band: float
    bars: tuple[float, ...]
    text: str
    tone: str = "open"

    @property
    def ends(self) -> tuple[float, ...]:
        """All ratios that the strip shows."""
        return (self.value, self.low, self.high, self.band, 1 / self.band if self.band else 0.0, *self.bars)

    @property
    def drawable(self) -> bool:
        """Whether all ratios are within the range of an axis; NaN is not. Evidence is untrusted."""
        return all(1 / _FARTHEST <= end <= _FARTHEST for end in self.ends)


@dataclass(frozen=True, slots=True)
class Strip:
    """The positions of the parts of an interval for SVG: places and widths in percent."""

    interval: Interval
    value: str
    low: str
    high: str
    noise: str
    noise_width: str
    bars: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Chart:
    """The strips that could be drawn, their axis, and the place of the ratio 1."""

    strips: tuple[Strip, ...]
    ticks: tuple[Tick, ...]
    one: str


def chart(intervals: Iterable[Interval]) -> Chart:
    """The strips of all intervals on one axis that spans all of them and the ratio 1.

    >>> chart([Interval("step time", 2.0, 0.5, 2.0, 1.0, (), "")]).one
    '50%'
    """
    drawn = [interval for interval in intervals if interval.drawable]
    ends = [end for interval in drawn for end in interval.ends]
    axis = scale([1 / _NARROWEST, _NARROWEST, *ends], logarithmic=True, pad=_MARGIN)
    return Chart(tuple(_strip(interval, axis) for interval in drawn), axis.ticks(), percent(axis.share(1.0)))


def _strip(interval: Interval, axis: Scale) -> Strip:
    start, end = axis.share(1 / interval.band), axis.share(interval.band)
    return Strip(
        interval,
        percent(axis.share(interval.value)),
        percent(axis.share(interval.low)),
        percent(axis.share(interval.high)),
        percent(start),
        percent(end - start),
        tuple(percent(axis.share(bar)) for bar in interval.bars),
    )
