"""The course of a loss over hundreds of steps: frozen, stopped falling, diverging. Judged by medians of stretches."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import pairwise

from ldlm_lint.monitor.detectors.base import Context, Found, at, number
from ldlm_lint.monitor.detectors.robust import jitter, median
from ldlm_lint.monitor.records import Record


class FrozenLoss:
    """The same printed value 50 times in a row, after a stretch in which most values differed from the one before.

    A loss that converges on a coarse scale repeats itself more and more often first, and a bar that shows an old value
    repeats every value: in both, most neighbours were equal before the run, and the detector says nothing.
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
        """Follow runs of equal values; a block without any two equal neighbours is taken in at once."""
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


class _Stretches:
    """Medians and standard errors of stretches of ``length`` points, and the records that they end at."""

    def __init__(self, length: int, keep: int) -> None:
        self.length = length
        self.open: list[float] = []
        self.medians: deque[float] = deque(maxlen=keep)
        self.errors: deque[float] = deque(maxlen=keep)
        self.ends: deque[Record] = deque(maxlen=keep)

    def feed(self, values: Sequence[float], records: Sequence[Record]) -> Iterator[None]:
        """Take values in, and pause at the end of each stretch."""
        start = 0
        while start < len(values):
            end = min(start + self.length - len(self.open), len(values))
            self.open.extend(values[start:end])
            if len(self.open) == self.length:
                middle = median(self.open)
                self.medians.append(middle)
                # 1.25 sigma / sqrt(n) is the standard error of a median; the noise from value to value has no trend.
                self.errors.append(1.2533 * jitter(self.open) / self.length**0.5)
                self.ends.append(records[end - 1])
                self.open = []
                yield
            start = end


class Plateau:
    """A loss that fell steadily over four stretches and then not at all over two: a kink, as no convergence has one.

    Steadily: each fall is within a third of the one before, and 8 standard errors. Not at all: by less than a
    tenth of that, and less than 2 standard errors. Exponential and power-law curves slow down before they are flat; a
    stepped learning rate makes falls that are not alike. A learning rate that was lowered by half explains it as well,
    and so does an epoch boundary (bars show the mean of an epoch so far).
    """

    LENGTHS = (100, 200, 400)
    FALLS = 3

    def __init__(self, name: str) -> None:
        self.name = name
        self.scales = [_Stretches(length, self.FALLS + 3) for length in self.LENGTHS]

    def feed(self, values: Sequence[float], records: Sequence[Record], context: Context) -> Iterator[Found]:
        """Judge each scale at the end of each of its stretches."""
        for scale in self.scales:
            for _ in scale.feed(values, records):
                if len(scale.medians) == self.FALLS + 3 and self._kink(scale, context):
                    yield self._found(scale)
                    # The other lengths would see the same kink again.
                    for one in self.scales:
                        one.medians.clear()
                        one.errors.clear()
                        one.ends.clear()

    def _kink(self, scale: _Stretches, context: Context) -> bool:
        middles = list(scale.medians)
        error = max(scale.errors) * 2**0.5
        falls = [before - after for before, after in pairwise(middles)]
        steady, flat = falls[: self.FALLS], falls[self.FALLS :]
        alike = all(0.75 <= b / a <= 1.33 for a, b in pairwise(steady)) if min(steady) > 8 * error else False
        # The stretch in which it stops is a mixture; only the last one is judged by its fall alone.
        still = abs(flat[-1]) < min(2 * error, 0.1 * steady[-1]) and abs(flat[0]) < 0.6 * steady[-1]
        if not alike or not still:
            return False
        first, last = scale.ends[0].line, scale.ends[-1].line
        # The mean of an epoch so far is not one series over epochs.
        return not Context.within(context.lowered, first, last) and not Context.within(context.marks, first, last)

    def _found(self, scale: _Stretches) -> Found:
        middles, since, record = list(scale.medians), scale.ends[self.FALLS], scale.ends[-1]
        text = (
            f"{self.name} stays at {number(middles[-1])} since {at(since)}; it fell by "
            f"{number(middles[self.FALLS - 1] - middles[self.FALLS])} in the {scale.length} records before"
        )
        numbers = {"level": middles[-1], "before": middles[0], "records": scale.length}
        return Found("plateau", record, text, numbers, since=since)


class Divergence:
    """A loss that goes back to where it came from, or leaves its first level upwards, and stays there.

    Compared are medians of 25 points: half of what was gained is lost and the level is 1.3 times the best one; or,
    without any gain, 1.5 times the first one and rising over 8 stretches. What was gained counts as lost if the last 100
    points rose by 8 times what these medians usually move by, or 16 stretches rose one after the other, and to 1.1 times
    of all in the last 500 points: waves do neither. Only for losses that are positive throughout, whose
    first stretch has a level (a penalty that grows from zero has none).
    """

    LENGTH, LATELY, RISES, KEEP = 25, 5, 16, 21
    LOST, ABOVE_BEST, ABOVE_FIRST, MOVES = 0.5, 1.3, 1.5, 8.0

    def __init__(self, name: str) -> None:
        self.name = name
        self.stretches = _Stretches(self.LENGTH, self.KEEP)
        self.first = self.best = 0.0
        self.level = self.told = False
        self.positive = True
        self.seen = 0

    def feed(self, values: Sequence[float], records: Sequence[Record], context: Context) -> Iterator[Found]:
        """Judge at the end of each stretch."""
        if not self.positive:
            return
        if min(values) <= 0:
            self.positive = False
            return
        for _ in self.stretches.feed(values, records):
            found = self._judge(context)
            if found is not None:
                yield found

    def _judge(self, context: Context) -> Found | None:
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
        start = self.stretches.ends[-self.LATELY].line
        raised = Context.within(context.raised, start, self.stretches.ends[-1].line)
        return sudden and lately > 1.1 * max(usual) and not raised


def _rising(values: list[float]) -> bool:
    return len(values) > 2 and all(before < after for before, after in pairwise(values))
