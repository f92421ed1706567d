"""The contents of a picture of a run as plain data: panels, curves, alarms. The renderer only decides about the
appearance."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

from ldlm_lint.monitor.alarms import Alarm, Level
from ldlm_lint.monitor.axis import Axis
from ldlm_lint.monitor.health import Health
from ldlm_lint.monitor.judging import Series
from ldlm_lint.monitor.names import meaning, plain
from ldlm_lint.monitor.report import bar, distinct, summary_line
from ldlm_lint.monitor.trace import Point

COURSES, MARKS = 10, 12
"""The most courses of a panel and the most alarms that are marked."""
LOGARITHMIC = 30.0
"""The ratio of the largest to the smallest value from which on a panel is logarithmic."""
MEMORY, _MEMORY, _GIB = "memory in GiB", "memory_bytes", 2.0**30
_SPEEDS = {
    "tokens_per_s": "tokens per second",
    "samples_per_s": "samples per second",
    "iterations_per_s": "iterations per second",
    "step_time_s": "seconds per step",
}


@dataclass(frozen=True, slots=True)
class Course:
    """A series as drawn: ``points`` are x and y (NaN breaks the line); ``lost`` marks non-finite values."""

    label: str
    split: str
    points: tuple[tuple[float, float], ...]
    lost: tuple[tuple[float, float], ...] = ()
    series: tuple[str, str] = ("", "")
    """The source and the label of the series, as alarms name it."""


@dataclass(frozen=True, slots=True)
class Panel:
    """One quantity over the run. ``left`` counts the curves that did not fit."""

    title: str
    courses: tuple[Course, ...]
    logarithmic: bool = False
    from_zero: bool = False
    left: int = 0


@dataclass(frozen=True, slots=True)
class Mark:
    """An alarm at its place, or None if its source is not drawn. ``number`` counts from 1 along the run."""

    number: int
    x: float | None
    level: Level
    kind: str
    text: str
    alarm: Alarm


@dataclass(frozen=True, slots=True)
class Picture:
    """The panels from the top down on one axis, ``unit`` of which is ``step``, ``epoch`` or ``record``."""

    title: str
    unit: str
    panels: tuple[Panel, ...]
    marks: tuple[Mark, ...] = ()
    notes: tuple[str, ...] = ()


def picture(health: Health, marks: int = MARKS) -> Picture | None:
    """The picture of a run with at most ``marks`` alarms; None without a loss, a gradient norm, a speed and memory."""
    chosen = {title: series for title, series in _chosen(list(health.series)).items() if series}
    if not chosen:
        return None
    axes = _axes(health)
    drawn = [name for name in axes if any(one.key.source == name for series in chosen.values() for one in series)]
    unit = axes[drawn[0]].unit
    same = {name: axes[name] for name in drawn if axes[name].unit == unit}
    notes = [
        f"{name} is not drawn: its x axis is {axes[name].unit}, not {unit}" for name in drawn if name not in same
    ]
    alarms = [one for one in distinct(health.book.alarms) if one.level > Level.INFO]
    troubled = {(one.source, one.series) for one in alarms}
    panels = [_panel(title, series, same, troubled) for title, series in chosen.items()]
    marked, more = _marks(alarms, same, marks)
    if more:
        notes.append(f"and {more} more alarms in the report")
    title = next(iter(same)) if len(same) == 1 else f"{len(same)} logs"
    title = f"{title}: {summary_line(health).split('; ')[0].rstrip('.')}"
    return Picture(title, unit, tuple(one for one in panels if one.courses), tuple(marked), tuple(notes))


def _chosen(every: Sequence[Series]) -> dict[str, list[Series]]:
    """The series of each panel by the panel's title."""
    every = [one for one in every if one.trace.count]
    losses = [one for one in every if one.key.named.key == "loss"]
    losses = losses or [one for one in every if "loss" in plain(one.key.named.raw).split("_")]
    training = [one for one in every if one.key.template.split != "val"]
    speeds = {key: [one for one in training if one.key.named.key == key and one.trace.count > 1] for key in _SPEEDS}
    speed = next((key for key, series in speeds.items() if series), "step_time_s")
    norms = [one for one in every if one.key.named.key == "grad_norm"]
    return {"loss": losses, "gradient norm": norms, _SPEEDS[speed]: speeds[speed], **_memory(training)}


def _memory(training: Sequence[Series]) -> dict[str, list[Series]]:
    """The panel of memory: bytes as GiB, else what the log prints in the unit that most of its memory columns have."""
    said = [one for one in training if meaning(one.key.named.raw).key == _MEMORY or one.key.named.key == _MEMORY]
    units = Counter(one.key.named.unit for one in said if one.key.named.unit)
    unit = "B" if units["B"] else next((unit for unit, _ in units.most_common(1)), "")
    title = MEMORY if unit == "B" else f"memory in {unit}, as the log says it"
    return {title: [one for one in said if one.key.named.unit == unit]} if unit else {}


def _axes(health: Health) -> dict[str, Axis]:
    """The axis of each source, from its longest series of training.

    A loss with a position is preferred: the steps of a bar may belong to an evaluation.
    """

    def worth(one: Series) -> tuple[bool, bool, bool, int]:
        last = one.trace.last
        stepped = last is not None and last.step is not None
        placed = stepped or (last is not None and last.epoch is not None)
        return one.key.template.split != "val", placed and one.key.named.key == "loss", stepped, one.trace.count

    best: dict[str, Series] = {}
    for one in health.series:
        known = best.get(one.key.source)
        if one.trace.count and (known is None or worth(one) > worth(known)):
            best[one.key.source] = one
    return {name: Axis(_all_points(one)) for name, one in best.items()}


def _all_points(one: Series) -> list[Point]:
    """The places of a series, those of NaN too."""
    lost = [point for pair in one.trace.lost() for point in pair]
    return sorted({*one.trace.points(), *lost}, key=lambda point: point.index)


def _panel(title: str, series: list[Series], axes: dict[str, Axis], troubled: set[tuple[str, str]]) -> Panel:
    """The panel of a quantity; ``troubled`` are the sources and labels of series with alarms."""
    series = [one for one in series if one.key.source in axes]
    most = max((one.trace.count for one in series), default=0)
    # Training first, and the series that has every step before one that has a few.
    series.sort(key=lambda one: (one.key.template.split == "val", one.trace.count < most / 4))
    # A series with a problem is never left out.
    chosen = sorted(series, key=lambda one: not (one.curve.nonfinite or (one.key.source, one.key.label) in troubled))[
        :COURSES
    ]
    left = len(series) - len(chosen)
    series = [one for one in series if one in chosen]
    files = {one.key.source for one in series}
    shared = len(_folder(files))
    names = Counter((one.key.source, _words(one)) for one in series)
    labels = []
    for one in series:
        alone = names[one.key.source, _words(one)] == 1
        label = _words(one) if alone else one.key.label
        if len(files) > 1:
            label = f"{one.key.source[shared:]} {label}".rstrip()
        labels.append(label or one.key.short)
    again = Counter(labels)
    courses = [
        _course(one, axes[one.key.source], f"{label}{bar(one)}" if again[label] > 1 else label, _GIB if title == MEMORY else 1.0)
        for one, label in zip(series, labels, strict=True)
    ]
    values = [y for one in courses for _, y in one.points if math.isfinite(y)]
    low, high = min(values, default=0.0), max(values, default=0.0)
    logarithmic = low > 0 and high / low > LOGARITHMIC
    from_zero = (title in _SPEEDS.values() or title.startswith("memory")) and not logarithmic and low >= 0
    return Panel(title, tuple(courses), logarithmic, from_zero, left)


def _folder(files: Iterable[str]) -> str:
    """The folders that the paths of several files begin with, all of them, to the last separator."""
    folders = zip(*(one.split(os.sep)[:-1] for one in files), strict=False)
    shared = [names[0] for names in takewhile(lambda names: len(set(names)) == 1, folders)]
    return "".join(f"{name}{os.sep}" for name in shared)


def _words(one: Series) -> str:
    """The text that distinguishes a series from the others of its file in one panel: ``val``, ``rank 3``; empty if
    nothing does."""
    key = one.key
    words = [key.template.split, f"rank {key.rank}" if key.rank is not None else "", key.actor]
    name = "" if key.named.key else key.named.raw
    return " ".join(word for word in (name, *words) if word)


def _course(one: Series, axis: Axis, label: str, unit: float) -> Course:
    points = [(place, point.value / unit) for point in one.trace.points() if (place := axis.at(point)) is not None]
    lost = []
    for first, last in one.trace.lost():
        start, end = axis.at(first), axis.at(last)
        if start is not None and end is not None:
            lost.append((min(start, end), max(start, end)))
    series = one.key.source, one.key.label
    return Course(label, one.key.template.split, tuple(_broken(points, lost)), tuple(lost), series)


def _broken(
    points: Sequence[tuple[float, float]], lost: Sequence[tuple[float, float]]
) -> Iterator[tuple[float, float]]:
    """The points with a gap where the run went back to an earlier step, and where values are not finite."""
    before: float | None = None
    for x, y in points:
        if before is not None and (x < before or any(before <= start and end <= x for start, end in lost)):
            yield x, math.nan
        yield x, y
        before = x


def _marks(alarms: Sequence[Alarm], axes: dict[str, Axis], most: int) -> tuple[list[Mark], int]:
    """The gravest alarms in the order of the run, and how many others there are."""
    files = {*axes, *(one.source for one in alarms)}
    shared = len(_folder(files))
    placed = []
    for one in alarms[:most]:
        axis = axes.get(one.source)
        where = f"step {one.step:,}" if one.step is not None else f"line {one.line:,}"
        where = f"{one.source[shared:]}, {where}" if len(files) > 1 else where
        where = f"{where}, rank {one.ranks[0]}" if len(one.ranks) == 1 else where
        x = axis.of_alarm(one.step, one.line) if axis else None
        placed.append((x, one.level, one.kind, f"{where}: {one.message}", one))
    placed.sort(key=lambda one: math.inf if one[0] is None else one[0])
    return [Mark(number, *one) for number, one in enumerate(placed, 1)], len(alarms) - len(placed)
