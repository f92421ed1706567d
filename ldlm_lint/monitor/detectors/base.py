"""What all detectors share: what they are told about a run besides their own series, and what they say."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from ldlm_lint.monitor.alarms import Level
from ldlm_lint.monitor.records import Record

WARM_UP = 20
"""Points of a series in which overflows, skipped steps and zero learning rates are normal."""


class Found(NamedTuple):
    """Trouble at a record: its kind, the sentence with the numbers, and the numbers; ``level`` None is the kind's own.

    ``since`` is the record where it began, if that is not the one at which it was certain.
    """

    kind: str
    record: Record
    message: str
    numbers: Mapping[str, float | int | str]
    level: Level | None = None
    since: Record | None = None


@dataclass(slots=True)
class Context:
    """What detectors of one process know of each other's series.

    ``marks`` are the lines of epoch boundaries and restarts, ``raised`` those where the learning rate rose to at least
    twice its value, ``lowered`` those where it fell to half; ``warming`` is the last one of the warm-up that a run begins
    with. ``overflows`` says that the run scales its loss, so that a
    gradient norm that is not finite now and then is how it works.
    """

    marks: deque[float] = field(default_factory=lambda: deque(maxlen=256))
    raised: deque[float] = field(default_factory=lambda: deque(maxlen=256))
    lowered: deque[float] = field(default_factory=lambda: deque(maxlen=256))
    overflows: bool = False
    warming: float = -1

    @staticmethod
    def within(lines: Iterable[float], first: float, last: float) -> bool:
        """Whether one of the lines lies between two lines, both included."""
        return any(first <= one <= last for one in lines)


class Detector(Protocol):
    """Judges one series, block by block; what it says does not depend on where the blocks are cut.

    It is fed finite values only, with the records they are from, and keeps a bounded window of them.
    """

    def feed(self, values: Sequence[float], records: Sequence[Record], context: Context) -> Iterator[Found]:
        """Take the next values in and yield what is wrong with them."""
        ...


def number(value: float) -> str:
    """A figure for a sentence: four significant digits."""
    return f"{value:.4g}"


def at(record: Record) -> str:
    """The place of a record for a sentence."""
    return f"step {record.step}" if record.step is not None else f"line {int(record.line)}"
