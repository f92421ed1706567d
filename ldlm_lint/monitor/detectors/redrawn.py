"""Readings of a progress bar: it is drawn ten times a second, and shows an average of the last moments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ldlm_lint.monitor.detectors.base import Context, Detector, Found
from ldlm_lint.monitor.records import Record


class Redrawn:
    """Passes on one reading of a bar's pace per second of its own time.

    Ten readings of one second are one measurement ten times: a machine that is busy for two seconds is not a slower
    run.
    """

    APART = 1.0

    def __init__(self, judge: Detector, *, inverse: bool = False) -> None:
        self.judge, self.inverse = judge, inverse
        self.last: Record | None = None

    def feed(self, values: Sequence[float], records: Sequence[Record], context: Context) -> Iterator[Found]:
        """Judge the readings that are far enough apart."""
        kept = [(value, one) for value, one in zip(values, records, strict=True) if self._counts(value, one)]
        if kept:
            yield from self.judge.feed([value for value, _ in kept], [one for _, one in kept], context)

    def _counts(self, value: float, record: Record) -> bool:
        last = self.last
        if last is not None and last.step is not None and record.step is not None and record.step >= last.step:
            steps = record.step - last.step
            if value > 0 and (steps * value if self.inverse else steps / value) < self.APART:
                return False
        self.last = record
        return True
