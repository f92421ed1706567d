"""Charts as data: scales, ticks and paths. `templates/charts.html` draws them as SVG, `assets/charts.css` colours them.

Places are shares of the plot, from 0 to 1 (`Scale.share`), and are drawn as percentages: a chart takes the width it gets
while its text keeps its size. Curves are paths in a square of `GRID` units that is stretched over the plot.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

GRID = 1000
"""Units of the square that paths are drawn in: across, and down."""
COLOURS = 5
"""Classes ``series-1`` to ``series-5``; further lines are dashed."""
ROWS = 16
"""Rows of the table beside a chart."""
_PAD = 0.05
_LARGEST = 1e150
"""Beyond it a value is outside of the plot: the arithmetic of a scale has to stay finite."""
_EQUAL = 1e-12
"""Values closer than this part of them are one value."""
_NEAR = 0.045
"""Markers closer than this share of the plot have one label."""
_FEW = 40
"""Lines with fewer points show each of them."""

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Tick:
    """A place on an axis, as a share of the plot, with its text."""

    at: float
    text: str

    @property
    def edge(self) -> str:
        """Where the text begins, so that it stays inside: ``start``, ``middle`` or ``end``."""
        return "start" if self.at < 0.03 else "end" if self.at > 0.97 else "middle"


@dataclass(frozen=True, slots=True)
class Scale:
    """An axis from ``low`` to ``high``; ``logarithmic`` ones have positive values only."""

    low: float
    high: float
    logarithmic: bool = False

    def share(self, value: float) -> float:
        """Where a value is: 0 at ``low``, 1 at ``high``.

        >>> Scale(0, 200).share(50), round(Scale(1, 1000, True).share(10), 3)
        (0.25, 0.333)
        """
        if self.logarithmic:
            low, high = math.log(self.low), math.log(self.high)
            return (math.log(value) - low) / (high - low)
        return (value - self.low) / (self.high - self.low)

    def ticks(self, most: int = 6) -> tuple[Tick, ...]:
        """Round values inside of the scale, at most ``most`` of them.

        >>> [tick.text for tick in Scale(0, 100).ticks()], [tick.text for tick in Scale(1, 1000, True).ticks()]
        (['0', '20', '40', '60', '80', '100'], ['1', '10', '100', '1000'])
        """
        values = _decades(self, most) if self.logarithmic else _steps(self, most)
        return tuple(Tick(self.share(value), short(value)) for value in values)


def scale(values: Iterable[float], *, logarithmic: bool = False, from_zero: bool = False, pad: float = _PAD) -> Scale:
    """The scale for the finite ones of these values, with a margin of ``pad`` of its length at both ends.

    ``from_zero`` begins at zero, without a margin there.

    >>> scale([0, 10], pad=0), scale([2, 10], from_zero=True, pad=0), scale([3, 3], pad=0)
    (Scale(low=0, high=10, logarithmic=False), Scale(low=0.0, high=10, logarithmic=False), Scale(low=2.5, high=3.5, logarithmic=False))
    """
    least = 1 / _LARGEST if logarithmic else -_LARGEST
    finite = [min(max(value, least), _LARGEST) for value in values if math.isfinite(value)]
    low, high = min(finite, default=0.0), max(finite, default=1.0)
    if logarithmic:
        if high <= low * (1 + _EQUAL):
            low, high = low / 2, high * 2
        margin = (high / low) ** pad
        return Scale(low / margin, high * margin, True)
    if from_zero and low >= 0:
        return Scale(0.0, (high if high > 1 / _LARGEST else 1.0) * (1 + pad))
    if high - low <= max(_EQUAL * max(abs(low), abs(high)), 1 / _LARGEST):
        half = abs(low) / 6 if abs(low) > 1 / _LARGEST else 0.5
        low, high = low - half, high + half
    margin = (high - low) * pad
    return Scale(low - margin, high + margin)


def short(value: float) -> str:
    """A value for an axis.

    >>> [short(value) for value in (0, 0.25, 1500, 20000, 3.5e6, 2e-5, 7e12, -10)]
    ['0', '0.25', '1500', '20k', '3.5M', '2e-5', '7e12', '-10']
    """
    size = abs(value)
    if size and (size < 1e-3 or size >= 1e12):
        mantissa, exponent = f"{value:.2e}".split("e")
        return f"{float(mantissa):g}e{int(exponent)}"
    for least, divisor, letter in ((1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k")):
        if size >= least:
            return f"{value / divisor:.4g}{letter}"
    return f"{value:.4g}"


def _steps(of: Scale, most: int) -> list[float]:
    rough = (of.high - of.low) / max(most - 1, 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10, 20) if power * factor >= rough * 0.999)
    first = math.ceil(of.low / step - 1e-9)
    return [float(f"{number * step:.12g}") for number in range(first, first + most + 1) if number * step <= of.high + 1e-9 * step]


def _decades(of: Scale, most: int) -> list[float]:
    first, last = math.ceil(math.log10(of.low) - 1e-9), math.floor(math.log10(of.high) + 1e-9)
    if last - first + 1 >= 3:
        every = -(-(last - first + 1) // most)
        return [10.0**power for power in range(first, last + 1, every)]
    fine = [factor * 10.0**power for power in range(first - 1, last + 1) for factor in (1, 2, 5)]
    inside = [value for value in fine if of.low <= value <= of.high]
    return inside[:most] if len(inside) >= 2 else _steps(of, most)


def thinned(points: Sequence[Point], most: int) -> list[Point]:
    """At most about ``most`` of the points: of each stretch the lowest, the highest and a gap (NaN), so that spikes stay.

    >>> thinned([(x, 9.0 if x == 37 else 1.0) for x in range(1000)], 20)[1]
    (37, 9.0)
    """
    if len(points) <= most:
        return list(points)
    width = -(-2 * len(points) // most)
    kept: list[Point] = []
    for start in range(0, len(points), width):
        stretch = range(start, min(start + width, len(points)))
        finite = [at for at in stretch if math.isfinite(points[at][1])]
        gaps = [at for at in stretch if not math.isfinite(points[at][1])][:1]
        ends = {min(finite, key=lambda at: points[at][1]), max(finite, key=lambda at: points[at][1])} if finite else set()
        kept += [points[at] for at in sorted({*ends, *gaps})]
    return kept


def path(points: Iterable[Point], x: Scale, y: Scale) -> str:
    """The ``d`` of a path through the points, in `GRID` units; a value that is not finite breaks it.

    >>> path([(0, 0), (1, 1), (1, float("nan")), (2, 0)], Scale(0, 2), Scale(0, 1))
    'M0 1000L500 0M1000 1000h.01'
    """
    parts: list[str] = []
    for line in _unbroken(points):
        places = [f"{_grid(x.share(at))} {_grid(1 - y.share(value))}" for at, value in line]
        # A point alone is drawn as one by its round ends.
        parts.append("M" + "L".join(places) + ("h.01" if len(places) == 1 else ""))
    return "".join(parts)


def _unbroken(points: Iterable[Point]) -> Iterator[list[Point]]:
    line: list[Point] = []
    for point in points:
        if math.isfinite(point[1]):
            line.append(point)
        elif line:
            yield line
            line = []
    if line:
        yield line


def _grid(share: float) -> str:
    return f"{round(GRID * share, 1):g}"


def percent(share: float) -> str:
    """A share of the plot in SVG form.

    >>> percent(0.25), percent(1 / 3)
    ('25%', '33.33%')
    """
    return f"{round(100 * share, 2):g}%"


@dataclass(frozen=True, slots=True)
class Line:
    """The data of one line: points (NaN breaks it), and the stretches in which values are not finite."""

    label: str
    points: Sequence[Point]
    lost: Sequence[tuple[float, float]] = ()
    colour: int | None = None
    """Its number among all lines of a page, from 0, if that is not its place in the chart."""


@dataclass(frozen=True, slots=True)
class Marker:
    """A numbered place of the x axis. ``level`` is a class (``grave``, ``costly``); ``target`` the id that it links to."""

    number: int
    x: float
    level: str
    words: str
    target: str


@dataclass(frozen=True, slots=True)
class DrawnLine:
    """A line as the template draws it; ``xs``, ``ys`` and ``spans`` (``start:end``) are for the readout, separated by commas."""

    label: str
    colour: int
    dashed: bool
    path: str
    dots: tuple[tuple[str, str], ...]
    xs: str
    ys: str
    spans: str
    last: str
    lost: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class DrawnMarkers:
    """Neighbouring markers that share a label."""

    at: str
    edge: str
    text: str
    level: str
    words: str
    target: str


@dataclass(frozen=True, slots=True)
class LineChart:
    """A chart for the macro ``line_chart``. ``key`` is unique on the page and usable as an id."""

    key: str
    title: str
    note: str
    unit: str
    lines: tuple[DrawnLine, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    markers: tuple[DrawnMarkers, ...]
    bands: tuple[tuple[str, str], ...]
    low: float
    high: float
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def line_chart(
    key: str,
    title: str,
    lines: Sequence[Line],
    *,
    x: Scale | None = None,
    unit: str = "step",
    note: str = "",
    logarithmic: bool = False,
    from_zero: bool = False,
    markers: Sequence[Marker] = (),
    bands: Sequence[tuple[float, float]] = (),
    most: int = 1100,
) -> LineChart:
    """Lines over one x axis, which charts below each other share as ``x``; ``bands`` are stretches of it with a ground.

    ``most`` bounds the points of a line.
    """
    x = x or x_scale(lines)
    thin = [thinned(line.points, most) for line in lines]
    y = scale((value for points in thin for _, value in points), logarithmic=logarithmic, from_zero=from_zero)
    drawn = tuple(_drawn(line, number, points, x, y) for number, (line, points) in enumerate(zip(lines, thin, strict=True)))
    return LineChart(
        key=key,
        title=title,
        note=note,
        unit=unit,
        lines=drawn,
        x_ticks=x.ticks(8),
        y_ticks=y.ticks(5),
        markers=tuple(_grouped(markers, x)),
        bands=tuple(_span(band, x) for band in bands),
        low=x.low,
        high=x.high,
        head=(unit, *(line.label for line in lines)),
        rows=tuple(_rows(lines, ROWS)),
    )


def x_scale(lines: Iterable[Line]) -> Scale:
    """The x axis that spans all lines from edge to edge, without a margin."""
    lines = list(lines)
    places = [at for line in lines for at, _ in line.points]
    return scale([*places, *(at for line in lines for span in line.lost for at in span)], pad=0.0)


def _drawn(line: Line, number: int, points: Sequence[Point], x: Scale, y: Scale) -> DrawnLine:
    number = number if line.colour is None else line.colour
    finite = [point for point in points if math.isfinite(point[1])]
    dots = finite if len(finite) < _FEW else []
    return DrawnLine(
        label=line.label,
        colour=number % COLOURS + 1,
        dashed=number % (2 * COLOURS) >= COLOURS,
        path=path(points, x, y),
        dots=tuple((percent(x.share(at)), percent(1 - y.share(value))) for at, value in dots),
        xs=",".join(f"{at:.8g}" for at, _ in finite),
        ys=",".join(f"{value:.5g}" for _, value in finite),
        spans=",".join(f"{start:.8g}:{end:.8g}" for start, end in line.lost),
        last=_last(finite, line.lost),
        lost=tuple(_span(span, x) for span in line.lost),
    )


def _last(finite: Sequence[Point], lost: Sequence[tuple[float, float]]) -> str:
    if not finite or any(end >= finite[-1][0] for _, end in lost):
        return "not a number"
    return f"{finite[-1][1]:.5g}"


def _span(span: tuple[float, float], x: Scale) -> tuple[str, str]:
    """Start and width; the shortest one is still visible."""
    start, end = x.share(span[0]), x.share(span[1])
    return percent(min(start, 0.996)), percent(max(end - start, 0.004))


def _grouped(markers: Sequence[Marker], x: Scale) -> Iterator[DrawnMarkers]:
    groups: list[list[Marker]] = []
    for marker in sorted(markers, key=lambda marker: marker.x):
        near = bool(groups) and x.share(marker.x) - x.share(groups[-1][0].x) < _NEAR
        if near:
            groups[-1].append(marker)
        else:
            groups.append([marker])
    for group in groups:
        tick = Tick(x.share(group[0].x), _numbers([marker.number for marker in group]))
        level = "grave" if any(marker.level == "grave" for marker in group) else group[0].level
        words = "; ".join(marker.words for marker in group)
        yield DrawnMarkers(percent(tick.at), tick.edge, tick.text, level, words, group[0].target)


def _numbers(numbers: Sequence[int]) -> str:
    """The numbers of a group, in as few signs as possible.

    >>> _numbers([3]), _numbers([2, 1, 3]), _numbers([1, 3]), _numbers([1, 4, 6, 9])
    ('3', '1-3', '1, 3', '1 …')
    """
    ordered = sorted(numbers)
    if len(ordered) > 1 and ordered[-1] - ordered[0] == len(ordered) - 1:
        return f"{ordered[0]}-{ordered[-1]}"
    return ", ".join(map(str, ordered)) if len(ordered) < 4 else f"{ordered[0]} …"


def _rows(lines: Sequence[Line], most: int) -> Iterator[tuple[str, ...]]:
    """Values at evenly spaced places of the longest line; of other lines the last value before that place."""
    finite = [[point for point in line.points if math.isfinite(point[1])] for line in lines]
    longest = max(finite, key=len, default=[])
    count = min(most, len(longest))
    places = [longest[round(number * (len(longest) - 1) / max(count - 1, 1))][0] for number in range(count)]
    for at in dict.fromkeys(places):
        yield (f"{at:,.6g}", *(_value(line, points, at) for line, points in zip(lines, finite, strict=True)))


def _value(line: Line, finite: Sequence[Point], at: float) -> str:
    if any(start <= at <= end for start, end in line.lost):
        return "not a number"
    return next((f"{value:.5g}" for place, value in reversed(finite) if place <= at), "")


def sparkline(values: Sequence[float], most: int = 64) -> str:
    """The ``d`` of a small curve without axes, in `GRID` units; empty for fewer than two values.

    >>> sparkline([1, 2, 3])
    'M0 1000L500 500L1000 0'
    """
    points = thinned([(float(at), value) for at, value in enumerate(values)], most)
    if sum(math.isfinite(value) for _, value in points) < 2:
        return ""
    x, y = scale((at for at, _ in points), pad=0.0), scale((value for _, value in points), pad=0.0)
    return path(points, x, y)
