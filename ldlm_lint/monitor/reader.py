"""From text to records: each skeleton is understood once, and lines of a known one only have their numbers taken."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ldlm_lint.monitor import blocks, dicts, generic, headers
from ldlm_lint.monitor.blocks import Blocks, whole
from ldlm_lint.monitor.formats import FORMATS, SHAPES, bars
from ldlm_lint.monitor.headers import Clock
from ldlm_lint.monitor.lines import Framer
from ldlm_lint.monitor.numbers import MARK, locked, split, value, without_bars
from ldlm_lint.monitor.plans import NOTHING, NOWHERE, Part, Plan
from ldlm_lint.monitor.records import Line, Read, Record, Template

# Skeletons that are remembered; lines of one skeleton after which a pattern of its own is worth making; patterns kept.
REMEMBERED = 2048
_LOCK_AFTER = 3
_LOCKS = 12


def plan(text: str, texts: Sequence[str]) -> Plan:
    """What the lines of a skeleton mean; ``text`` is whole, ``texts`` are its pieces between the numbers."""
    parts = dicts.read(text, SHAPES) or _exact(text, texts) or bars.read(text, texts) or generic.read(text, texts)
    return Plan(tuple(parts), headers.rank(text), headers.time(text)) if parts else NOTHING


def _exact(text: str, texts: Sequence[str]) -> list[Part] | None:
    for one in FORMATS:
        parts = one.read(text, texts)
        if parts is not None:
            return parts
    return None


@dataclass(slots=True)
class _Known:
    """What is known of a skeleton, and how many lines of it were read."""

    plan: Plan
    row: blocks.Row | None
    head: blocks.Head | None
    seen: int = 0


class LogReader:
    """Reads one log (one file, one stream) in chunks of any size. Never two logs: lines share their state.

    ``labels`` as of `Framer`. ``fast`` False reads each line afresh, which gives the same and takes longer.
    """

    def __init__(self, labels: bool = False, fast: bool = True) -> None:
        self._framer = Framer(labels)
        self._fast = fast
        self._known: dict[str, _Known] = {}
        self._locks: list[_Lock] = []
        self._templates: dict[tuple[Any, ...], Template] = {}
        self._clock = Clock()
        self._blocks = Blocks(self._interned)

    def read(self, chunk: bytes | str) -> Iterator[Read]:
        """Each line that ends in this chunk with its records."""
        for line in self._framer.feed(chunk):
            yield line, self.records(line)

    def feed(self, chunk: bytes | str) -> Iterator[Record]:
        """The records of the lines that end in this chunk."""
        for line in self._framer.feed(chunk):
            yield from self.records(line)

    def close(self) -> Iterator[Read]:
        """What is left at the end of the log: a line without newline, a table without its last rule."""
        for line in self._framer.close():
            yield line, self.records(line)
        for record in self._blocks.close():
            yield Line(record.line, record.rank, record.actor, ""), (record,)

    def records(self, line: Line) -> tuple[Record, ...]:
        """The records of a framed line."""
        text = line.text
        if not self._blocks.open:
            for index, lock in enumerate(self._locks):
                found = lock.match(text)
                if found:
                    if index:
                        self._locks.insert(0, self._locks.pop(index))
                    return lock.records(line, found.groups(), self._clock)
        pieces = split(without_bars(text))
        if len(pieces) > 1:
            return self._numbered(line, pieces)
        if text.startswith("|") and self._blocks.group(line):
            return ()
        return self._blocks.close() if self._blocks.open else ()

    def _numbered(self, line: Line, pieces: list[str]) -> tuple[Record, ...]:
        texts, numbers = pieces[::2], pieces[1::2]
        key = MARK.join(texts)
        known = self._understood(key, texts)
        if known.row and self._blocks.takes(line, known.row):
            self._blocks.add(line, known.row, numbers[-1])
            return ()
        closed = self._blocks.close() if self._blocks.open else ()
        if known.row and known.row.table:
            self._blocks.add(line, known.row, numbers[-1])
        elif known.head:
            self._blocks.begin(line, known.head, numbers, _rank(headers.rank(key), numbers, line))
        known.seen += 1
        if self._fast and known.seen == _LOCK_AFTER and known.plan.parts and not (known.row or known.head):
            self._locks.insert(0, _Lock(known.plan, texts))
            del self._locks[_LOCKS:]
        return closed + _records(line, known.plan, numbers, self._clock)

    def _understood(self, key: str, texts: Sequence[str]) -> _Known:
        known = self._known.get(key) if self._fast else None
        if known is None:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
                self._templates.clear()
            row = blocks.row(key)
            made = plan(key, texts) if not (row and row.table) else NOTHING
            parts = tuple(part._replace(template=self._interned(part.template)) for part in made.parts)
            known = self._known[key] = _Known(made._replace(parts=parts), row, blocks.head(key))
        return known

    def _interned(self, template: Template) -> Template:
        return self._templates.setdefault(template.identity, template)


def _records(line: Line, made: Plan, numbers: Sequence[str], clock: Clock) -> tuple[Record, ...]:
    if not made.parts:
        return ()
    rank = _rank(made.rank, numbers, line)
    time = clock.read([numbers[at] for at in made.time]) if made.time else None
    records = []
    for template, step, epoch, indices, scales in made.parts:
        values = [value(numbers[at]) for at in indices]
        if scales:
            values = [one * scale for one, scale in zip(values, scales, strict=True)]
        at_step = whole(value(numbers[step])) if step >= 0 else None
        at_epoch = value(numbers[epoch]) if epoch >= 0 else None
        records.append(Record(line.line, rank, line.actor, template, at_step, at_epoch, tuple(values), time))
    return tuple(records)


def _rank(index: int, numbers: Sequence[str], line: Line) -> int | None:
    return line.rank if line.rank is not None or index == NOWHERE else whole(value(numbers[index]))


class _Lock:
    """The pattern of one skeleton with its plan: what `_records` does, for lines that match."""

    def __init__(self, made: Plan, texts: Sequence[str]) -> None:
        wanted = set(made.time) | {made.rank}
        for part in made.parts:
            wanted |= {part.step, part.epoch, *part.values}
        wanted.discard(NOWHERE)
        places = {index: place for place, index in enumerate(sorted(wanted))}
        places[NOWHERE] = NOWHERE
        self.match = locked(texts, wanted).fullmatch
        self._plan = Plan(
            tuple(
                part._replace(
                    step=places[part.step], epoch=places[part.epoch], values=tuple(places[at] for at in part.values)
                )
                for part in made.parts
            ),
            places[made.rank],
            tuple(places[at] for at in made.time),
        )

    def records(self, line: Line, numbers: Sequence[str], clock: Clock) -> tuple[Record, ...]:
        """The records of a line from the numbers that its pattern took."""
        return _records(line, self._plan, numbers, clock)
