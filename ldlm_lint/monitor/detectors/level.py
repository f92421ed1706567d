"""The course of a loss over hundreds of steps: frozen, or diverging by the medians of stretches."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import pairwise

from ldlm_lint.monitor.detectors.base import Context, Found, at, number
from ldlm_lint.monitor.detectors.plateau import Plateau
from ldlm_lint.monitor.detectors.robust import jitter, median
from ldlm_lint.monitor.detectors.stretches import Stretches
from ldlm_lint.monitor.records import Record


class FrozenLoss:
    """The same printed value 50 times in a row, after a stretch in which most values differed from the one before.

    A loss that converges on a coarse scale repeats itself more and more often first, and a progress bar with an old
    value repeats every value: in both cases most neighbours were equal before, and the detector reports nothing.
    """

    RUN, BEFORE, FROM_START = 50, 40, 100

    def __init__(self, name: str, run: int = RUN) -> None:
        self.name, self.run = name, run
        self.changes: deque[bool] = deque(maxlen=self.BEFORE)
        self.value: float | None = None
        self.since: Record | None = None
        self.length = self.seen = 0
        self.varied: float | None = None
        self.told = False

    def feed(self, values: Sequence[float], records: Sequence[Record], context: Context) -> Iterator[Found]:
        """Follow runs of equal values; a block without any two equal neighbours is added as a whole."""
        if values[0] != self.value and not any(map(float.__eq__, values, values[1:])):
            self.changes.extend([True] * min(len(values), self.BEFORE))
            self.value, self.since, self.length, self.told = values[-1], records[-1], 1, False
            self.seen += len(values)
            return
        for value, record in zip(values, records, strict=True):
            self.seen += 1
            if value == self.value:
                self.length += 1
                if self.length == 2:
                    self.varied = sum(self.changes) / self.BEFORE if len(self.changes) >= self.BEFORE else None
                self.changes.append(False)
                if not self.told and self._frozen():
                    self.told = True
                    yield self._found(record)
            else:
                self.value, self.since, self.length, self.told = value, record, 1, False
                self.changes.append(True)

    def _frozen(self) -> bool:
        if self.length == self.seen:
            # A loss of exactly zero from the start is usual in policy optimization.
            return self.length >= max(self.FROM_START, self.run) and bool(self.value) and len(f"{self.value:g}") >= 5
        return self.length >= self.run and self.varied is not None and self.varied > 0.8

    def _found(self, record: Record) -> Found:
        assert self.since is not None and self.value is not None
        text = f"{self.name} is {number(self.value)} in {self.length} records in a row, since {at(self.since)}"
        return Found("frozen-loss", record, text, {"value": self.value, "run": self.length}, since=self.since)


class Divergence:
    """A loss that returns to its starting level, or rises above its first level, and stays there.

    Medians of 25 points are compared: half of the gain is lost and the level is 1.3 times the best one; or, without any
    gain, 1.5 times the first one and rising over 8 stretches. The gain counts as lost if the last 100 points rose by 8
    times the usual movement of these medians, or 16 consecutive stretches rose, and to 1.1 times of all in the last 500
    points: waves do neither. Exponential growth is detected earlier: three rises in a row, by 6 spreads and to 1.8
    times the level before them and 1.4 times of all in the 100 points before. Only for losses that are positive
    throughout, whose first stretch has a level (a penalty that grows from zero has none).
    """

    LENGTH, LATELY, RISES, KEEP = 25, 5, 16, 21
    LOST, ABOVE_BEST, ABOVE_FIRST, MOVES = 0.5, 1.3, 1.5, 8.0
    GROWS, EACH, TO, ABOVE_USUAL, GROWN = 4, 1.08, 1.8, 1.4, 6.0

    def __init__(self, name: str, stretches: Stretches) -> None:
        self.name = name
        self.stretches = stretches
        self.first = self.best = 0.0
        self.level = self.told = False
        self.seen = 0

    def judge(self, context: Context) -> Found | None:
        """Judge at the end of a stretch."""
        self.seen += 1
        middles = list(self.stretches.medians)
        record = self.stretches.ends[-1]
        if self.seen == 1:
            self.first = self.best = middles[-1]
            self.level = self.stretches.errors[-1] * self.LENGTH**0.5 < 0.4 * self.first
            return None
        self.best = min(self.best, middles[-1])
        before, self.told = self.told, self.level and self._gone(middles, context)
        if before or not self.told:
            return None
        text = (
            f"{self.name} is at {number(middles[-1])} at {at(record)} (median of {self.LENGTH}); "
            f"it began at {number(self.first)} and had been at {number(self.best)}"
        )
        return Found("divergence", record, text, {"level": middles[-1], "first": self.first, "best": self.best})

    def _gone(self, middles: list[float], context: Context) -> bool:
        """Whether the level is out of bounds, and, unless it was so already, whether it got there as waves do not."""
        if self._growing(middles, context):
            return True
        gained, lately = self.first - self.best, min(middles[-2:])
        learnt = gained > 0.1 * self.first
        if not learnt:
            return lately > self.ABOVE_FIRST * self.first and _rising(middles[-self.RISES // 2 :])
        if lately <= max(self.best + self.LOST * gained, self.ABOVE_BEST * self.best):
            return False
        usual = middles[: -self.LATELY]
        if self.told or len(usual) < 2:
            return self.told
        rise = middles[-1] - min(middles[-self.LATELY :])
        moves = max(jitter(usual), 2 * median(self.stretches.errors))
        sudden = rise > self.MOVES * moves or (len(middles) >= self.RISES and _rising(middles[-self.RISES :]))
        return sudden and lately > 1.1 * max(usual) and not self._raised(self.LATELY, context)

    def _growing(self, middles: list[float], context: Context) -> bool:
        """Whether the last medians grow by a factor each: a loss that grows by 1 % a step is 2.7 times as high after 100."""
        last, usual = middles[-self.GROWS :], middles[: -self.GROWS][-self.GROWS :]
        if len(last) < self.GROWS or last[-1] < self.TO * last[0] or not _rising(last):
            return False
        if usual and last[-1] < self.ABOVE_USUAL * max(usual):
            return False
        errors = [error / level for error, level in zip(self.stretches.errors, middles, strict=True)][-2 * self.GROWS :]
        # Without a reference, each change must be a rise.
        each = 1.0 if usual else self.EACH
        grows = math.log(last[-1] / last[0]) > self.GROWN * max(errors)
        return grows and min(b / a for a, b in pairwise(last)) >= each and not self._raised(self.GROWS, context)

    def _raised(self, stretches: int, context: Context) -> bool:
        """Whether the learning rate was raised in the last stretches."""
        ends = self.stretches.ends
        return Context.within(context.raised, ends[-min(stretches, len(ends))].line, ends[-1].line)


def _rising(values: list[float]) -> bool:
    return len(values) > 2 and all(before < after for before, after in pairwise(values))


class Course:
    """The course of a loss by the medians of 25 records, for divergence and plateaus."""

    def __init__(self, name: str) -> None:
        self.stretches = Stretches(Divergence.LENGTH, Divergence.KEEP)
        self.divergence = Divergence(name, self.stretches)
        self.plateau = Plateau(name)
        self.positive = True

    def feed(self, values: Sequence[float], records: Sequence[Record], context: Context) -> Iterator[Found]:
        """Judge at the end of each stretch."""
        self.positive = self.positive and min(values) > 0
        for _ in self.stretches.feed(values, records):
            found = self.divergence.judge(context) if self.positive else None
            if found is not None:
                yield found
            found = self.plateau.judge(self.stretches, context)
            if found is not None:
                yield found
