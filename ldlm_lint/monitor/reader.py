"""From text to records: each skeleton is analysed once, and from lines of a known one only the numbers are taken."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from ldlm_lint.monitor import blocks, dicts, generic, headers
from ldlm_lint.monitor.blocks import Blocks, whole
from ldlm_lint.monitor.formats import FORMATS, SHAPES, bars, yolo
from ldlm_lint.monitor.headers import Clock
from ldlm_lint.monitor.lines import Framer
from ldlm_lint.monitor.numbers import MARK, locked, split, without_bars
from ldlm_lint.monitor.plans import NOTHING, NOWHERE, Part, Plan
from ldlm_lint.monitor.records import Line, Read, Record, Template
from ldlm_lint.monitor.sieve import Sieve
from ldlm_lint.monitor.values import Values

# No print statement of a trainer writes more than this without its numbers; verl's, the longest, stays below 6,000.
LONGEST_PRINT = 10_000
# Cached skeletons; lines of one skeleton after which it gets its own pattern; cached patterns.
REMEMBERED = 2048
_LOCK_AFTER = 3
_LOCKS = 12


def plan(text: str, texts: Sequence[str]) -> Plan:
    """The plan for the lines of a skeleton; ``text`` is whole, ``texts`` are its pieces between the numbers."""
    parts = dicts.read(text, SHAPES, bars.before)
    if not parts and len(text) <= LONGEST_PRINT:
        parts = _exact(text, texts) or bars.read(text, texts) or generic.read(text, texts)
    return Plan(tuple(parts), headers.rank(text), _time(text, parts)) if parts else NOTHING


def _time(text: str, parts: Sequence[Part]) -> tuple[int, ...]:
    """The numbers of a line's date; none if it is a position and the clock of a bar, ``12/60 0:00:03``."""
    made = headers.time(text)
    return made if not any({part.step, part.total} & {*made} for part in parts) else ()


def _exact(text: str, texts: Sequence[str]) -> list[Part] | None:
    for word, one in _WORDED:
        if word in text and (parts := one.read(text, texts)) is not None:
            return parts
    return None


# The blanks before a number belong to it, so a skeleton has none there.
_WORDED = [(one.word.rstrip(), one) for one in FORMATS]


@dataclass(slots=True)
class _Known:
    """A known skeleton, and the number of its lines so far."""

    plan: Plan
    row: blocks.Row | None
    head: blocks.Head | None
    seen: int = 0


class LogReader:
    """Reads one log (one file, one stream) in chunks of any size. Never two logs: lines share their state.

    ``labels`` as for `Framer`. ``fast`` False analyses each line again, with the same records in more time.
    """

    def __init__(self, labels: bool = False, fast: bool = True) -> None:
        self._sieve = Sieve()
        self._framer = Framer(labels, self._chosen if fast else None)
        self._fast = fast
        self._known: dict[str, _Known] = {}
        self._locks: list[_Lock] = []
        self._templates: dict[tuple[Any, ...], Template] = {}
        self._clock = Clock()
        self._values = Values(self._interned)
        self._blocks = Blocks(self._interned, self._values.commas)
        self._heading: tuple[str, ...] = ()

    def _chosen(self, text: str, whole: Sequence[str]) -> dict[int, bool] | None:
        """The lines that may say something, if nothing is open that gives a meaning to the others."""
        return None if self._blocks.open or self._heading else self._sieve.lines(text, whole)

    def read(self, chunk: bytes | str) -> Iterator[Read]:
        """Each line that ends in this chunk with its records; without most of the lines that say nothing."""
        lines, idle = self._framer.feed(chunk), self._framer.idle
        for line in lines:
            yield line, () if line[0] in idle else self.records(line)

    def feed(self, chunk: bytes | str) -> Iterator[Record]:
        """The records of the lines that end in this chunk."""
        for _, records in self.read(chunk):
            yield from records

    def close(self) -> Iterator[Read]:
        """The rest at the end of the log: a line without newline, a table without its last rule."""
        for line in self._framer.close():
            yield line, self.records(line)
        for record in self._blocks.close():
            yield Line(record.line, record.rank, record.actor, ""), (record,)

    def records(self, line: Line) -> tuple[Record, ...]:
        """The records of a framed line."""
        text = line[3]
        if not self._blocks.open:
            for lock in self._locks:
                found = lock.match(text)
                if found:
                    if lock is not self._locks[0]:
                        self._locks.remove(lock)
                        self._locks.insert(0, lock)
                    numbers = found.groups()
                    try:
                        return lock.quick(line, numbers, self._clock)
                    except ValueError:
                        made = lock.records(line, numbers, self._clock)
                    if made is not None:
                        return made
        pieces = split(without_bars(text))
        if len(pieces) > 1:
            return self._numbered(line, pieces)
        if text.startswith("|") and self._blocks.group(line):
            return ()
        if heading := yolo.heading(text):
            self._heading = heading
        return self._blocks.close() if self._blocks.open else ()

    def _numbered(self, line: Line, pieces: list[str]) -> tuple[Record, ...]:
        texts, numbers = pieces[::2], pieces[1::2]
        key = MARK.join(texts)
        headed = self._heading and yolo.is_row(key)
        known = self._understood(key, texts, self._heading if headed else ())
        if known.row and self._blocks.takes(line, known.row):
            self._blocks.add(line, known.row, numbers[known.row.number])
            return ()
        closed = self._blocks.close() if self._blocks.open else ()
        if known.row and known.row.table:
            self._blocks.add(line, known.row, numbers[known.row.number])
        elif known.head:
            self._blocks.begin(line, known.head, numbers, _rank(headers.rank(key), numbers, line, self._values))
        known.seen += 1
        if self._fast and known.seen == _LOCK_AFTER and known.plan.parts and not (known.row or known.head or headed):
            self._locks.insert(0, _Lock(known.plan, texts, self._values))
            del self._locks[_LOCKS:]
        made = known.plan
        time = self._clock.read([numbers[at] for at in made.time]) if made.time and made.parts else None
        return closed + _records(line, made, numbers, time, self._values)

    def _understood(self, key: str, texts: Sequence[str], heading: tuple[str, ...]) -> _Known:
        name = f"{heading}{key}" if heading else key
        known = self._known.get(name) if self._fast else None
        if known is None:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
                self._templates.clear()
                self._values.clear()
            row = blocks.row(key)
            table = yolo.read(key, heading) if heading else None
            made = Plan(tuple(table)) if table else plan(key, texts) if not (row and row.table) else NOTHING
            parts = tuple(part._replace(template=self._interned(part.template)) for part in made.parts)
            known = self._known[name] = _Known(made._replace(parts=parts), row, blocks.head(key))
        return known

    def _interned(self, template: Template) -> Template:
        return self._templates.setdefault(template.identity, template)


def _records(line: Line, made: Plan, numbers: Sequence[str], time: float | None, read: Values) -> tuple[Record, ...]:
    if not made.parts:
        return ()
    rank = _rank(made.rank, numbers, line, read)
    records = []
    for part in made.parts:
        template, values = read.read(part, numbers)
        step, epoch = part.step, part.epoch
        at_step = whole(read.counter(numbers[step])) if step >= 0 else None
        at_epoch = read.counter(numbers[epoch], counted=False) if epoch >= 0 else None
        if values or not part.values:
            records.append(Record(line.line, rank, line.actor, template, at_step, at_epoch, tuple(values), time))
    return tuple(records)


def _rank(index: int, numbers: Sequence[str], line: Line, read: Values) -> int | None:
    return line.rank if line.rank is not None or index == NOWHERE else whole(read.counter(numbers[index]))


class _Lock:
    """The pattern of one skeleton with its plan: does the work of `_records` for matching lines."""

    def __init__(self, made: Plan, texts: Sequence[str], values: Values) -> None:
        self._values = values
        wanted = set(made.time) | {made.rank}
        for part in made.parts:
            wanted |= {part.step, part.epoch, part.total, *part.values}
        wanted.discard(NOWHERE)
        # A date and time of day is two groups: the minute, that many lines share, and the seconds.
        grouped = sorted(wanted - set(made.time[1:-1]))
        places = {index: place for place, index in enumerate(grouped)}
        places[NOWHERE] = NOWHERE
        self.match = locked(texts, wanted, made.time).fullmatch
        parts = [
            part._replace(
                step=places[part.step],
                epoch=places[part.epoch],
                values=tuple(places[at] for at in part.values),
                total=places[part.total],
            )
            for part in made.parts
        ]
        self._time = (places[made.time[0]], places[made.time[-1]]) if made.time else (NOWHERE, NOWHERE)
        self._plan = Plan(tuple(parts), places[made.rank])
        # A line of one record is usual, with plain numbers.
        plain = len(parts) == 1 and made.rank == parts[0].total == NOWHERE
        self.quick: _Maker = _quickly(parts[0], *self._time) if plain else self._all

    def records(self, line: Line, numbers: tuple[str, ...], clock: Clock) -> tuple[Record, ...] | None:
        """The records of a line from the numbers captured by its pattern; None if one of them is not a number."""
        try:
            return self._all(line, numbers, clock)
        except ValueError:  # `1.2.3`
            return None

    def _all(self, line: Line, numbers: tuple[str, ...], clock: Clock) -> tuple[Record, ...]:
        minute, seconds = self._time
        time = clock.at(numbers[minute], numbers[seconds]) if minute >= 0 else None
        return _records(line, self._plan, numbers, time, self._values)


_Maker = Callable[[Line, tuple[str, ...], Clock], tuple[Record, ...]]
_new = tuple.__new__


def _quickly(part: Part, minute: int, seconds: int) -> _Maker:
    """The function that builds the only record of a line. It raises ValueError for a number that is not plain (`1,024`,
    a step of `2e+3`)."""
    template, step, epoch, places, scales, *_ = part
    first, last = places[0], places[-1]
    neighbours = list(places) == list(range(first, last + 1))
    taken = itemgetter(slice(first, last + 1)) if neighbours else itemgetter(*places)
    scaled = [(place, scale) for place, scale in enumerate(scales or ()) if scale != 1.0]

    def make(line: Line, numbers: tuple[str, ...], clock: Clock) -> tuple[Record, ...]:
        values = [*map(float, taken(numbers))]
        for place, scale in scaled:
            values[place] *= scale
        return (
            _new(
                Record,
                (
                    line[0],
                    line[1],
                    line[2],
                    template,
                    int(numbers[step]) if step >= 0 else None,
                    float(numbers[epoch]) if epoch >= 0 else None,
                    tuple(values),
                    clock.at(numbers[minute], numbers[seconds]) if minute >= 0 else None,
                ),
            ),
        )

    return make
