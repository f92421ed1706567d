"""The values of a training log's line: the contract between reading logs and judging them.

A `Template` is the common part of all lines of one shape; a `Record` is one line of it, so that a record is small and a
series is found by the identity of its template and the index of its column.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

# The quantities with one name in all formats, and the unit of their values.
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

    ``key`` is its canonical name (a key of `UNITS`), empty if it has none; ``raw`` the name in the log, unique in its
    template; ``unit`` that of the values, after conversion (`UNITS` where ``key`` is set).
    """

    key: str
    raw: str
    unit: str = ""


class Field(NamedTuple):
    """A column of a template with the value from one line."""

    key: str
    raw: str
    value: float
    unit: str = ""


@dataclass(frozen=True, eq=False, slots=True)
class Template:
    """The columns of lines of one shape. ``name`` is the format with its variant (``nanogpt/iter``, ``generic``).

    ``split`` is ``train``, ``val`` or empty if unknown. Two templates may look the same and are still two: lines of
    another shape are another series. ``exact`` is False if no format of that name is known and the line was read by the
    generic rules; ``shape`` then is the line without its numbers, which distinguishes two prints (for a progress bar
    its description).
    """

    name: str
    split: str
    columns: tuple[Column, ...]
    exact: bool = True
    shape: str = ""

    @property
    def identity(self) -> tuple[str, str, tuple[Column, ...], str]:
        """The identity across processes and files; a reader creates one template for each."""
        return self.name, self.split, self.columns, self.shape


class Record(NamedTuple):
    """One line's values, in the order of ``template.columns``.

    ``line`` is 1-based (redraws of a progress bar share it). ``rank`` is None if unknown; ``actor`` distinguishes
    processes with a name but without a rank (``TaskRunner pid=12``). ``step`` and ``epoch`` are as printed; ``time`` is
    in seconds since 1970 (a log's own clock: its time zone is unknown, only differences count).
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
        """The value of a canonical key; None if the line does not have it."""
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
