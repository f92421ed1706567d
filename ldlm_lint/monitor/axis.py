"""One horizontal axis for all series of a source: steps if they increase through the run, else epochs, else records."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise

from ldlm_lint.monitor.trace import Point

_NEAR = 0.1
"""A step within this part of the range above the first one begins an epoch; a restart goes back to somewhere else."""
_MOST_EPOCHS = 60
"""Epochs that begin anew at step 0 are put one after another if there are not more: each needs points that show it."""


class Axis:
    """The positions of a source's points and alarms; built from its longest training series.

    ``unit`` is ``step``, ``epoch``, ``step (summed over epochs)`` or ``record``: one unit of the axis.
    """

    def __init__(self, points: Sequence[Point]) -> None:
        steps = [one.step for one in points if one.step is not None]
        epochs = [one.epoch for one in points if one.epoch is not None]
        self._offsets: list[tuple[int, int]] = []
        self._per_epoch = 0.0
        begun = _begun(steps) if len(steps) == len(points) else []
        if steps and len(steps) == len(points) and not begun:
            self.unit = "step"
        elif len(epochs) == len(points) and epochs == sorted(epochs) and self._orders(steps, epochs):
            self.unit = "epoch"
        elif begun and len(begun) < _MOST_EPOCHS:
            self.unit = "step (summed over epochs)"
            self._offsets = _offsets(points, begun)
        else:
            self.unit = "record"
        # A progress bar that is drawn again keeps its line number.
        self._told_by_lines = len({one.line for one in points}) > len(points) / 2
        self._lines: list[int] = []
        self._places: list[float] = []
        for one in points:
            place = self._own(one)
            if place is not None and (not self._lines or one.line >= self._lines[-1]):
                self._lines.append(one.line)
                self._places.append(place)

    def _orders(self, steps: Sequence[int], epochs: Sequence[float]) -> bool:
        """Whether epochs distinguish the points: alone, or with the step within the epoch."""
        if any(one != int(one) for one in epochs) or len(set(epochs)) == len(epochs):
            return True
        self._per_epoch = max(steps, default=0) + 1.0
        return len(steps) == len(epochs)

    def at(self, point: Point) -> float | None:
        """The position of a point; by its line if it has no value on the axis; None if unknown."""
        place = self._own(point)
        if place is None or (self.unit == "record" and self._told_by_lines):
            return self.at_line(point.line)
        return place

    def at_line(self, line: int) -> float | None:
        """The position of a line of the log: that of the last record before it."""
        if not self._lines:
            return None
        return self._places[max(0, bisect_right(self._lines, line) - 1)]

    def of_alarm(self, step: int | None, line: int) -> float | None:
        """The place of an alarm."""
        return float(step) if step is not None and self.unit == "step" else self.at_line(line)

    def _own(self, point: Point) -> float | None:
        if self.unit == "record":
            return float(point.index)
        if self.unit == "epoch":
            if point.epoch is None or (self._per_epoch and point.step is None):
                return None
            return point.epoch + (point.step / self._per_epoch if self._per_epoch and point.step else 0.0)
        if point.step is None:
            return None
        if not self._offsets:
            return float(point.step)
        number = bisect_right(self._offsets, point.line, key=lambda one: one[0]) - 1
        return float(self._offsets[max(0, number)][1] + point.step)


def _begun(steps: Sequence[int]) -> list[int]:
    """The beginnings of epochs: where the step returns to the first ones."""
    near = min(steps) + _NEAR * (max(steps) - min(steps)) if steps else 0
    return [place for place, (before, step) in enumerate(pairwise(steps), 1) if step < before and step <= near]


def _offsets(points: Sequence[Point], begun: Sequence[int]) -> list[tuple[int, int]]:
    """For each epoch its first line and the offset of its steps."""
    found, offset = [(points[0].line, 0)], 0
    start = 0
    for place in begun:
        offset += max(one.step or 0 for one in points[start:place]) + 1
        found.append((points[place].line, offset))
        start = place
    return found
