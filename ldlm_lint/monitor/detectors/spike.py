"""Loss spikes: values far above the trend of the recent ones."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence
from operator import sub

from ldlm_lint.monitor.alarms import Level
from ldlm_lint.monitor.detectors.base import Context, Found, at, number
from ldlm_lint.monitor.detectors.robust import jitter, trend_end
from ldlm_lint.monitor.records import Record

WINDOW, FEWEST, EVERY = 48, 16, 16
SIGMAS = 8.0
"""Spreads above the trend. With 0.1 % of the level as the least spread: no false alarm on the real logs of the study."""
LEAST = 0.10
"""Share of the level below which no value is called a spike."""
ROW, ROW_SIGMAS, ROW_LEAST = 3, 5.5, 0.15
"""Three values in a row need less: noise that reaches 5.5 spreads once does not do so three times running."""
FLOOR = 0.001
BEYOND = 1.7
"""Times the farthest that the series has ordinarily been above its trend."""
LOG_JITTERS = 4.5
"""Times what the logarithms differ by from value to value: the noise of a loss near zero is a factor, not a distance."""
HEAVY, TAIL, SURE = 5.0, 2.75, 10.0
"""A series whose ordinary values went 5 spreads away from the trend, or whose outer tenth lies 2.75 times as far out as its
middle (2.44 for a normal distribution), has a heavy tail: one value proves nothing, and neither does one below 10."""
MANY = 200
GRACE, RAISED = 25, 100
"""Points after an epoch boundary or a restart, and after a raised learning rate, in which a higher loss is expected."""


class LossSpike:
    """A value above the trend of the last 48 by 8 spreads and by 10 % of the level; two of three where tails are heavy.

    A single value, or a loss that is not always positive (policy gradients), is a note, not an alarm. The limit is set
    again every 16 points and holds for the next 16, so that most blocks are judged by their maximum.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.window: deque[float] = deque(maxlen=WINDOW)
        self.lines: deque[float] = deque(maxlen=RAISED)
        self.scores: deque[float] = deque(maxlen=512)
        self.exceeded: deque[int] = deque(maxlen=2)
        self.seen = self.row = 0
        self.extreme = self.farthest = 0.0
        self.center, self.spread = 0.0, 0.0
        # The least difference of two values so far: printed values have limited digits.
        self.digit = float("inf")
        self.limit = self.row_limit = float("inf")

    def feed(self, values: Sequence[float], records: Sequence[Record], context: Context) -> Iterator[Found]:
        """Judge a block in stretches that end where the limit is set again."""
        start = 0
        while start < len(values):
            end = min(start + EVERY - self.seen % EVERY, len(values))
            part = values[start:end]
            if max(part) > min(self.limit, self.row_limit):
                for index in range(start, end):
                    yield from self._one(values[index], records[index], context, self.seen + index - start)
            else:
                self.row = 0
                self.lines.extend([one.line for one in records[start:end]])
                self._ordinary(part)
            self.seen += end - start
            start = end
            if self.seen % EVERY == 0:
                self._set()

    def _one(self, value: float, record: Record, context: Context, index: int) -> Iterator[Found]:
        self.row = self.row + 1 if value > self.row_limit else 0
        if value > self.limit or self.row >= ROW:
            self.window.append(value)
            yield from self._judge(value, record, context, index)
        else:
            self._ordinary([value])
        self.lines.append(record.line)

    def _ordinary(self, part: Sequence[float]) -> None:
        self.window.extend(part)
        if self.limit < float("inf"):
            scores = [(one - self.center) / self.spread for one in part]
            self.scores.extend(scores)
            self.extreme = max(self.extreme, *scores)
            self.farthest = max(self.farthest, self.extreme, -min(scores))

    def _set(self) -> None:
        values = list(self.window)
        if len(values) < FEWEST:
            return
        self.extreme *= 0.999
        self.farthest *= 0.999
        self.center, spread = trend_end(values)
        distinct = sorted(set(values))
        self.digit = min([self.digit, *map(sub, distinct[1:], distinct)])
        self.spread = max(spread, jitter(values), FLOOR * abs(self.center), min(self.digit, abs(self.center)), 1e-12)
        enough = max(SIGMAS, BEYOND * self.extreme) * self.spread
        self.limit = self.center + max(enough, LEAST * abs(self.center))
        self.row_limit = self.center + max(ROW_SIGMAS * self.spread, ROW_LEAST * abs(self.center))
        if distinct[0] > 0 < self.center:
            widest = self.center * math.exp(min(LOG_JITTERS * jitter(list(map(math.log, values))), 700.0))
            self.limit, self.row_limit = max(self.limit, widest), max(self.row_limit, widest)

    def _judge(self, value: float, record: Record, context: Context, index: int) -> Iterator[Found]:
        lines = [*self.lines, record.line]
        # After the initial warm-up, a higher loss is expected only as long as after an epoch boundary.
        recent = [*context.marks, context.warming]
        raised = [one for one in context.raised if one > context.warming]
        if Context.within(recent, lines[-GRACE:][0], record.line) or Context.within(raised, lines[0], record.line):
            return
        twice = self.row >= ROW or (bool(self.exceeded) and index - self.exceeded[-1] <= 2)
        self.exceeded.append(index)
        score = (value - self.center) / self.spread
        alone = not twice and (score < SURE or self._heavy())
        share = (value - self.center) / abs(self.center) if self.center else float("inf")
        text = (
            f"{self.name} {number(value)} at {at(record)}, {share:+.0%} above the trend ({number(self.center)}), "
            f"{score:.1f} times the usual noise"
        )
        numbers = {"value": value, "trend": self.center, "spread": self.spread, "score": score, "limit": self.limit}
        yield Found("loss-spike", record, text, numbers, Level.INFO if alone or min(self.window) <= 0 else None)

    def _heavy(self) -> bool:
        """Whether the tail of the series is heavy, or unknown so far."""
        if self.farthest > HEAVY or len(self.scores) < MANY:
            return True
        ordered = sorted(map(abs, self.scores))
        return ordered[int(0.9 * len(ordered))] > TAIL * ordered[len(ordered) // 2]
