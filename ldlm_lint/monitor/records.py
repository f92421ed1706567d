"""What a line of a training log says, as values. The one contract between reading logs and judging them.

A `Template` is what all lines of one shape have in common; a `Record` is one line of it, so that a record is small and a
series is found by the identity of its template and the index of its column.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

# The quantities that have one name in all formats, and the unit that their values are given in.
UNITS = {
    "loss": "",
    "grad_norm": "",
    "lr": "",
    "loss_scale": "",
    "step_time_s": "s",
    "data_time_s": "s",
    "samples_per_s": "1/s",
    "tokens_per_s": "1/s",
    "iterations_per_s": "1/s",
    "tflops": "TFLOP/s",
    "mfu": "%",
    "memory_bytes": "B",
    "skipped_steps": "",
    "nan_iterations": "",
    "perplexity": "",
    "accuracy": "",
    "samples": "",  # seen so far
    "tokens": "",  # seen so far
}


class Column(NamedTuple):
    """One quantity of a template.

    ``key`` is its canonical name (a key of `UNITS`), empty where it has none; ``raw`` the name as the log writes it,
    unique in its template; ``unit`` that of the values, after conversion (`UNITS` where ``key`` is set).
    """

    key: str
    raw: str
    unit: str = ""


class Field(NamedTuple):
    """A column of a template with the value that one line gives it."""

    key: str
    raw: str
    value: float
    unit: str = ""


@dataclass(frozen=True, eq=False, slots=True)
class Template:
    """What lines of one shape say. ``name`` is the format with its variant (``nanogpt/iter``, ``generic``).

    ``split`` is ``train``, ``val`` or empty where the line does not say. Two templates may look the same and are still
    two: lines of another shape are another series. ``exact`` is False where no format of that name is known and the
    line was read by the rules for any text; ``shape`` then is the line without its numbers, as what tells two prints
    apart (a progress bar's is its description).
    """

    name: str
    split: str
    columns: tuple[Column, ...]
    exact: bool = True
    shape: str = ""

    @property
    def identity(self) -> tuple[str, str, tuple[Column, ...], str]:
        """What stays the same over processes and files; a reader makes one template of each."""
        return self.name, self.split, self.columns, self.shape


class Record(NamedTuple):
    """One line's values, in the order of ``template.columns``.

    ``line`` is 1-based (redraws of a progress bar share it). ``rank`` is None where the log does not say; ``actor``
    tells processes apart that say who they are but not their rank (``TaskRunner pid=12``). ``step`` and ``epoch`` are as
    printed; ``time`` is in seconds since 1970 (a log's own clock: its time zone is unknown, only differences count).
    """

    line: int
    rank: int | None
    actor: str
    template: Template
    step: int | None
    epoch: float | None
    values: tuple[float, ...]
    time: float | None = None

    @property
    def split(self) -> str:
        """``train``, ``val`` or empty."""
        return self.template.split

    @property
    def fields(self) -> tuple[Field, ...]:
        """The columns with their values."""
        return tuple(Field(c.key, c.raw, v, c.unit) for c, v in zip(self.template.columns, self.values, strict=True))

    def get(self, key: str) -> float | None:
        """The value of a canonical key; None where the line does not give it."""
        for column, value in zip(self.template.columns, self.values, strict=True):
            if column.key == key:
                return value
        return None


class Line(NamedTuple):
    """A line of text as its program wrote it: without colours, rank prefix and carriage returns.

    ``bar`` is True for a redraw of a progress bar (it ended with a carriage return).
    """

    line: int
    rank: int | None
    actor: str
    text: str
    bar: bool = False


Read = tuple[Line, tuple[Record, ...]]
"""A line and what it says: what `LogReader.read` gives, so that events are matched in the same pass."""


def plain(record: Record) -> dict[str, object]:
    """The record as plain JSON values; NaN and infinities are left as floats."""
    return {
        "line": record.line,
        "rank": record.rank,
        "actor": record.actor,
        "template": record.template.name,
        "split": record.split,
        "step": record.step,
        "epoch": record.epoch,
        "time": record.time,
        "fields": [field._asdict() for field in record.fields],
    }


def every(reads: Iterator[Read]) -> Iterator[Record]:
    """The records alone."""
    for _, records in reads:
        yield from records
