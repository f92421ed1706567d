"""Non-finite values. In a loss they end a run; in a gradient norm they may be a skipped step."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence

from ldlm_lint.monitor.alarms import Level
from ldlm_lint.monitor.detectors.base import WARM_UP, Context, Found, at
from ldlm_lint.monitor.records import Record

NEAR, STREAK = 20, 3


class NotANumberLoss:
    """A loss of NaN or infinity: an immediate alarm."""

    kind = "nan-loss"

    def __init__(self, name: str, level: Level | None = None) -> None:
        self.name, self.level = name, level
        self.seen = 0
        self.last_finite: Record | None = None

    def judge(self, value: float, record: Record, context: Context) -> Iterator[Found]:
        """Judge a non-finite value."""
        before = f"; finite until {at(self.last_finite)}" if self.last_finite else ""
        yield Found(
            self.kind, record, f"{self.name} is {value} at {at(record)}{before}", {"value": str(value)}, self.level
        )


class NotANumberGradient(NotANumberLoss):
    """A gradient norm of NaN or infinity.

    Without loss scaling no step is skipped because of it: the weights are ruined, and one value is enough. With it, an
    occasional one is normal (the scale grows until it overflows), and so are any number in the first points.
    """

    kind = "nan-gradient"

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.recent: deque[int] = deque(maxlen=STREAK)

    def judge(self, value: float, record: Record, context: Context) -> Iterator[Found]:
        """Count it; `seen` is the number of the value in its series."""
        self.recent.append(self.seen)
        if self.seen < WARM_UP:
            context.overflows = True
            return
        near = len(self.recent) == STREAK and self.recent[-1] - self.recent[0] < NEAR
        level = Level.WARNING if near or not context.overflows else Level.INFO
        text = f"{self.name} is {value} at {at(record)}"
        if near:
            text += f", {STREAK} times within {NEAR} values"
        elif context.overflows:
            text += ", once; the run scales its loss, which skips such a step"
        yield Found(self.kind, record, text, {"value": str(value)}, level)


def split_finite(
    values: Sequence[float], records: Sequence[Record], judge: NotANumberLoss | None, context: Context
) -> tuple[Sequence[float], Sequence[Record], list[Found]]:
    """The finite values with their records, and the results of ``judge`` for the others."""
    if math.isfinite(sum(values)):
        if judge is not None:
            judge.seen += len(values)
            judge.last_finite = records[-1]
        return values, records, []
    kept: list[float] = []
    places: list[Record] = []
    found: list[Found] = []
    for value, record in zip(values, records, strict=True):
        if math.isfinite(value):
            kept.append(value)
            places.append(record)
            if judge is not None:
                judge.last_finite = record
        elif judge is not None:
            found.extend(judge.judge(value, record, context))
        if judge is not None:
            judge.seen += 1
    return kept, places, found
