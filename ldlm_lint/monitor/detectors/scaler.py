"""Mixed precision: optimizer steps that are skipped, and a loss scale that collapses."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence

from ldlm_lint.monitor.alarms import Level
from ldlm_lint.monitor.detectors.base import WARM_UP, Context, Found, at, number
from ldlm_lint.monitor.records import Record

STREAK, SHARE, WINDOW = 5, 0.10, 200
"""Skipped in a row, or the share of the last 200 steps, from which skipping is no search for a scale any more."""


class SkippedSteps:
    """Counts of skipped steps: of the whole run so far (they never fall) or since the last line (they do).

    The meaning of a count shows only when it falls for the first time, so a series that has not fallen is read as
    running totals, where only increases count: the smaller interpretation. The first 20 steps do not count.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.before: float | None = None
        self.step: int | None = None
        self.start: int | None = None
        self.total, self.mixed = True, False
        self.streak = 0.0
        self.recent: deque[tuple[int, float]] = deque(maxlen=WINDOW)
        self.told = False

    def feed(self, values: Sequence[float], records: Sequence[Record], context: Context) -> Iterator[Found]:
        """Judge each line; a block in which nothing was skipped is skipped."""
        if self.before is not None and min(values) == max(values) == self.before and (self.total or not self.before):
            self.step, self.streak = records[-1].step, 0
            return
        for value, record in zip(values, records, strict=True):
            yield from self._one(value, record, context)

    def _one(self, value: float, record: Record, context: Context) -> Iterator[Found]:
        before, step = self.before, self.step
        self.before, self.step = value, record.step
        self.start = record.step if self.start is None else self.start
        if before is None or record.step is None or step is None or self.start is None:
            return
        # Two optimizers (or processes) that write the same line for the same step make two counts in one series.
        self.mixed = self.mixed or (record.step == step and value != before)
        if record.step <= step or self.mixed:
            return
        self.total = self.total and value >= before
        skipped = min(value - before if self.total else value, record.step - step)
        context.overflows = context.overflows or skipped > 0
        if record.step - self.start <= WARM_UP:
            return
        self.streak = self.streak + skipped if skipped == record.step - step else 0
        if skipped:
            self.recent.append((record.step, skipped))
        while self.recent and self.recent[0][0] <= record.step - WINDOW:
            self.recent.popleft()
        lately, covered = sum(one for _, one in self.recent), min(WINDOW, record.step - self.start - WARM_UP)
        bad = self.streak >= STREAK or (covered >= WINDOW / 2 and lately > SHARE * covered)
        if bad and not self.told:
            what = f"{self.streak:.0f} in a row" if self.streak >= STREAK else f"{lately:.0f} of the last {covered}"
            text = f"{what} optimizer steps were skipped at {at(record)}"
            yield Found("skipped-steps", record, text, {"streak": self.streak, "skipped": lately, "of": covered})
        self.told = bad or (self.told and lately > 0)


class OverflowStreak:
    """Messages of skipped steps ("OVERFLOW! Skipping step"), counted between the records of their process.

    5 of them within 50 steps, or within 5 records if the log has no steps, are an alarm; the first 20 do not count,
    since the scale is still being searched. All ranks print the same message, and some libraries print it twice: only
    the first wording of the log counts, from the first rank that used it, and a message equal to the previous one (the
    same iteration, or the same scale without a rank) is not another overflow.
    """

    NEAR_STEPS, NEAR_RECORDS = 50, 5
    SAYS = ("step", "scale", "to", "apex")

    def __init__(self) -> None:
        self.seen = self.records = 0
        self.places: deque[tuple[int | None, int]] = deque(maxlen=STREAK)
        self.step: int | None = None
        self.first_step: int | None = None
        self.speaker: tuple[str, int | None] | None = None
        self.said = ""
        self.told = False

    def progress(self, records: Sequence[Record]) -> None:
        """Note how far the run is."""
        self.records += len(records)
        if self.first_step is None:
            self.first_step = next((one.step for one in records if one.step is not None), None)
        if records[-1].step is not None:
            self.step = records[-1].step

    def overflow(self, rank: int | None, details: Mapping[str, str]) -> dict[str, float] | None:
        """Process one message; returns the numbers of the alarm if there is a streak."""
        wording = next((name for name in self.SAYS if name in details), "")
        said = details.get(wording, "")
        self.speaker = self.speaker or (wording, rank)
        if self.speaker != (wording, rank):
            return None
        again, self.said = said == self.said, said
        if again and said and (wording == "step" or (rank is None and float(said) > 1)):
            return None
        step = int(said) if wording == "step" else self.step
        self.seen += 1
        early = step is None or step - (self.first_step or 0) < WARM_UP
        if early and self.seen <= WARM_UP + STREAK:
            return None
        self.places.append((step, self.records))
        (first, records), (now, seen) = self.places[0], self.places[-1]
        near = (
            now - first <= self.NEAR_STEPS
            if first is not None and now is not None
            else seen - records <= self.NEAR_RECORDS
        )
        near = near and len(self.places) == STREAK
        news, self.told = near and not self.told, near
        if not news:
            return None
        scale = {} if wording == "step" or not said else {"scale": float(said)}
        return {"messages": STREAK, **({} if now is None else {"step": now}), **scale}


class LossScale:
    """A loss scale below 2 that once was 1024 or more, or that fell by 256 within 50 records after the first 20.

    A constant scale of 1 (bfloat16) is not a problem, nor is the search in the first records.
    """

    COLLAPSED, ONCE, FALL, WINDOW = 2.0, 1024.0, 256.0, 50

    def __init__(self, name: str) -> None:
        self.name = name
        self.highest = 0.0
        self.seen = 0
        self.recent: deque[float] = deque(maxlen=self.WINDOW)
        self.told = False

    def feed(self, values: Sequence[float], records: Sequence[Record], context: Context) -> Iterator[Found]:
        """Judge changes of the scale; a block with an unchanged scale is skipped."""
        if self.recent and min(values) == max(values) == self.recent[-1]:
            self.seen += len(values)
            self.recent.extend(values)
            return
        for value, record in zip(values, records, strict=True):
            self.seen += 1
            self.highest = max(self.highest, value)
            context.overflows = context.overflows or (bool(self.recent) and value < self.recent[-1])
            lately = max(self.recent, default=value)
            self.recent.append(value)
            if self.seen <= WARM_UP:
                self.recent.clear()
                self.recent.append(value)
                continue
            gone = value < self.COLLAPSED and self.highest >= self.ONCE
            fell = lately >= self.FALL * value > 0
            if (gone or fell) and not self.told:
                text = f"{self.name} {number(value)} at {at(record)}, it had been {number(lately if fell else self.highest)}"
                level = Level.CRITICAL if gone else None
                yield Found("loss-scale-collapse", record, text, {"scale": value, "highest": self.highest}, level)
            self.told = gone or fell
