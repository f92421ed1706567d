"""From records to alarms: one judge per process of a source, with its series and their detectors."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ldlm_lint.monitor import step_times
from ldlm_lint.monitor.alarms import KINDS, Alarm, Level
from ldlm_lint.monitor.detectors import BARS, LoaderStall, detectors, finite_judge, stall_columns
from ldlm_lint.monitor.detectors.base import Context, Found
from ldlm_lint.monitor.detectors.finite import split_finite
from ldlm_lint.monitor.detectors.order import Order, Silence
from ldlm_lint.monitor.detectors.scaler import OverflowStreak
from ldlm_lint.monitor.records import Record, Template
from ldlm_lint.monitor.series import Curve, SeriesKey
from ldlm_lint.monitor.trace import Trace

BLOCK = 64
MOST_TEMPLATES = 256
_TURNS = 1 << 30
_ORDERED = ("loss-spike", "divergence", "plateau")
"""What is said of the order of a series; a series without steps and epochs may have none."""
_FIRST = ("lr", "loss_scale", "skipped_steps")
"""Columns that are judged before the others, since the others ask about them."""


class Series:
    """One column of one template of one process: its curve and its detectors."""

    def __init__(self, key: SeriesKey, capacity: int, broken: bool = False) -> None:
        self.key = key
        self.curve = Curve(capacity, broken)
        self.trace = Trace()
        self.finite = finite_judge(key.named, key.named.raw)
        self.detectors = detectors(key.template, key.column, key.named.raw)
        self.may_be_time = step_times.candidate(key.template) == key.column

    def feed(self, records: Sequence[Record], context: Context) -> Iterator[tuple[Found, int]]:
        """Process a block of its template; returns problems with the number of the record in the series."""
        before = self.curve.count + self.curve.nonfinite
        for found in self._feed(records, context):
            yield found, before + records.index(found.record)

    def _feed(self, records: Sequence[Record], context: Context) -> Iterator[Found]:
        column = self.key.column
        values = [one.values[column] for one in records]
        finite, places, found = split_finite(values, records, self.finite, context)
        self.trace.extend(values, records)
        if len(finite) == len(values):
            self.curve.extend(values, records)
        else:
            self.curve.take(values, records)
        yield from found
        if self.may_be_time and self.curve.count >= step_times.FEWEST:
            # Of a line for each epoch it is the time of an epoch.
            self.may_be_time = records[0].step is not None or records[0].epoch is None
            self._decide()
        if finite:
            for one in self.detectors:
                yield from one.feed(finite, places, context)

    def _decide(self) -> None:
        """Take the column as the time of a step if its values behave so."""
        if self.may_be_time and step_times.behaves(self.curve.values, self.key.named):
            self.key = replace(self.key, template=step_times.promoted(self.key.template, self.key.column))
            self.detectors = detectors(self.key.template, self.key.column, self.key.named.raw)
            self.may_be_time = False
        self.may_be_time &= self.curve.count < step_times.MOST


class Shape:
    """The state of one template of one process: its series, its order, its share of data time."""

    def __init__(self, template: Template, series: list[Series], context: Context, nameless: bool = False) -> None:
        # A bar without an epoch also restarts with each evaluation: it marks epochs of its own series only, and its
        # restart is not an earlier state of the run.
        self.nameless = nameless
        self.template, self.bar = template, template.name in BARS
        self.context = replace(context, marks=deque(maxlen=256)) if nameless else context
        self.series = sorted(series, key=lambda one: one.key.named.key not in _FIRST)
        self.order = Order()
        self.stall = LoaderStall() if stall_columns(template) else None
        self.columns = stall_columns(template)
        self.last: Record | None = None

    def news(self, records: Sequence[Record]) -> list[Record]:
        """The records without repetitions of the previous one: a redrawn progress bar."""
        kept = []
        shown = self.bar and self.template.split == "val"
        for index, record in enumerate(records):
            last, self.last = self.last, record
            again = last is not None and record.values == last.values
            # A validation is not measured again because the bar of the training shows it on.
            if again and (shown or (record.step is not None and last is not None and record.step == last.step)):
                continue
            following = records[index + 1] if self.bar and index + 1 < len(records) else None
            if following is None or record.step is None or following.step != record.step or not _plain(record):
                kept.append(record)
        return kept

    def shares(self, records: Sequence[Record], context: Context) -> Iterator[Found]:
        """Judge the share of data time in step time."""
        if self.stall is None or self.columns is None:
            return
        data, step = self.columns
        kept = [one for one in records if 0 <= one.values[data] <= one.values[step] and one.values[step] > 0]
        if kept:
            yield from self.stall.feed([one.values[data] / one.values[step] for one in kept], kept, context)


def _plain(record: Record) -> bool:
    """Whether a bar that is drawn again in the same step may replace a record: not if a value is non-finite."""
    return math.isfinite(sum(record.values))


class ProcessJudge:
    """Judges the records of one process of one source, in blocks; `flush` judges incomplete blocks."""

    def __init__(
        self,
        source: str,
        rank: int | None,
        actor: str,
        *,
        capacity: int,
        silence: Silence,
        since: int,
        broken: bool = False,
    ) -> None:
        self.source, self.rank, self.actor = source, rank, actor
        self.capacity, self.since, self.broken = capacity, since, broken
        self.context = Context()
        self.silence = silence
        self.overflow = OverflowStreak()
        self.shapes: dict[Template, Shape] = {}
        self._same: dict[Template, Shape] = {}
        self.pending: list[Record] = []
        self.unjudged = 0
        self._line, self._turn = 0, 0

    def add(self, record: Record) -> bool:
        """Take a record in; True when a block is full and `flush` is due."""
        if record.line == self._line:
            # The redraws of a bar share a line; their order is given by a part of a line.
            self._turn += 1
            record = record._replace(line=record.line + self._turn / _TURNS)  # type: ignore[arg-type]
        else:
            self._line, self._turn = record.line, 0
        self.pending.append(record)
        return len(self.pending) >= BLOCK

    def flush(self, final: bool = True) -> Iterator[tuple[Alarm, int]]:
        """Judge the new records; the alarms with the place of each in its series.

        ``final`` False: more records follow immediately, and the last of these waits for them.
        """
        records, self.pending = self.pending, []
        if not final and len(records) > 1:
            # The next one may be the same step of a bar, with the new values.
            self.pending = [records.pop()]
        blocks: dict[Template, list[Record]] = {}
        for record in records:
            if record.step is not None and record.step < self.since:
                continue
            blocks.setdefault(record.template, []).append(record)
            if record.time is not None:
                for found in self.silence.feed(record, self.context):
                    yield self._alarm(found, "time"), int(found.record.line)
        if records:
            self.overflow.progress(records)
        for template, block in blocks.items():
            yield from self._judge(template, block)

    def _judge(self, template: Template, records: list[Record]) -> Iterator[tuple[Alarm, int]]:
        shape = self._shape(template, records[0])
        if shape is None:
            self.unjudged += len(records)
            return
        records = shape.news(records)
        if not records:
            return
        if template.split != "val":
            for found in shape.order.feed(records, shape.context):
                if shape.nameless:
                    continue
                yield self._alarm(found, "step"), int(found.record.line)
        for series in shape.series:
            for found, position in series.feed(records, shape.context):
                yield self._alarm(found, series.key.label), position
        for found in shape.shares(records, shape.context):
            yield self._alarm(found, "data time"), int(found.record.line)

    def _shape(self, template: Template, first: Record) -> Shape | None:
        shape = self.shapes.get(template) or self._same.get(template)
        if shape is None:
            # A log that was rotated is read by another reader, with its own templates.
            shape = next((one for known, one in self.shapes.items() if known.identity == template.identity), None)
            if shape is not None:
                self._same = {**self._same, template: shape} if len(self._same) < MOST_TEMPLATES else {template: shape}
        if shape is None and len(self.shapes) < MOST_TEMPLATES:
            columns = range(len(template.columns))
            keys = [SeriesKey(self.source, self.rank, self.actor, template, index) for index in columns]
            nameless = template.name in BARS and first.epoch is None
            series = [Series(key, self.capacity, self.broken) for key in keys]
            shape = self.shapes[template] = Shape(template, series, self.context, nameless)
        return shape

    def _alarm(self, found: Found, series: str) -> Alarm:
        start = found.since or found.record
        level = KINDS[found.kind].level if found.level is None else found.level
        if found.kind in _ORDERED and found.record.step is None and found.record.epoch is None:
            # Loops inside of loops print the same line: the order in the file may differ from that in the run.
            level = Level.INFO
        return Alarm(
            kind=found.kind,
            level=level,
            source=self.source,
            message=found.message,
            line=int(start.line),
            series=series,
            step=start.step,
            detected=int(found.record.line),
            time=start.time,
            ranks=() if self.rank is None else (self.rank,),
            numbers=dict(found.numbers),
        )
