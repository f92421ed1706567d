"""Shared types of detectors: their context besides their own series, and their results."""

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
    """A problem at a record: its kind, the sentence with the numbers, and the numbers; ``level`` None means the kind's
    own.

    ``since`` is the record where it began, if that differs from the record where it became certain.
    """

    kind: str
    record: Record
    message: str
    numbers: Mapping[str, float | int | str]
    level: Level | None = None
    since: Record | None = None


@dataclass(slots=True)
class Context:
    """The shared context of the detectors of one process.

    ``marks`` are the lines of epoch boundaries and restarts, ``raised`` those where the learning rate rose to at least
    twice its value, ``lowered`` those where it fell to half; ``warming`` is the last one of the warm-up that a run
    begins with. ``overflows`` says that the run scales its loss, so that an occasional non-finite gradient norm is
    normal.
    """

    marks: deque[float] = field(default_factory=lambda: deque(maxlen=256))
    raised: deque[float] = field(default_factory=lambda: deque(maxlen=256))
    lowered: deque[float] = field(default_factory=lambda: deque(maxlen=256))
    overflows: bool = False
    warming: float = -1

    @staticmethod
    def within(lines: Iterable[float], first: float, last: float) -> bool:
        """Whether one of the lines is between two lines, both included."""
        return any(first <= one <= last for one in lines)


class Detector(Protocol):
    """Judges one series, block by block; its results do not depend on the block borders.

    It receives only finite values, with their records, and keeps a bounded window of them.
    """

    def feed(self, values: Sequence[float], records: Sequence[Record], context: Context) -> Iterator[Found]:
        """Process the next values and yield the problems."""
        ...


def number(value: float) -> str:
    """A figure for a sentence: four significant digits."""
    return f"{value:.4g}"


def at(record: Record) -> str:
    """The place of a record for a sentence."""
    return f"step {record.step}" if record.step is not None else f"line {int(record.line)}"
