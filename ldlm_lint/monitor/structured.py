"""Files written by trainers for programs: trainer_state.json, metrics.csv, event files of TensorBoard."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from ldlm_lint.extras import install
from ldlm_lint.monitor.blocks import whole
from ldlm_lint.monitor.formats import SHAPES
from ldlm_lint.monitor.names import EPOCH, STEP, Unit, meaning
from ldlm_lint.monitor.pairs import Pair, item
from ldlm_lint.monitor.plans import NOWHERE, Item, Part, assemble
from ldlm_lint.monitor.records import Line, Read, Record, Template

TENSORBOARD = f"event files need tensorboard: python -m pip install tensorboard, or {install('monitor')}"


class MissingPackage(Exception):
    """A package of an extra that a kind of file needs; the text says how to install it."""


class Structured(Protocol):
    """A file that grows; raises `OSError` if it cannot be read."""

    def new(self, final: bool) -> Iterator[Read]:
        """The entries that were not read yet, each as a line with its records.

        ``final`` says that this is the last call: a partial entry then counts as complete.
        """


def is_metrics(head: str) -> bool:
    """Whether the head of a CSV file is that of metrics: a step or epoch, and a measured value."""
    names = [name.strip() for name in head.split("\n", 1)[0].split(",")]
    keys = [meaning(name).key for name in names]
    measured = [
        name for name, key in zip(names, keys, strict=True) if key not in ("", STEP, EPOCH) or "loss" in name.lower()
    ]
    return bool(measured) and any(key in (STEP, EPOCH) for key in keys)


class _Rows:
    """Mappings of names to values become records; rows of the same names share their templates."""

    def __init__(self) -> None:
        self._parts: dict[tuple[str, ...], list[Part]] = {}
        self._templates: dict[Any, Template] = {}

    def records(self, line: int, row: Mapping[str, float], kind: str, time: float | None = None) -> tuple[Record, ...]:
        """The records of a row: one for each split in its names."""
        names = tuple(row)
        values = list(row.values())
        parts = self._parts.get(names)
        if parts is None:
            if len(self._parts) > 512:
                self._parts.clear()
            parts = self._parts[names] = [self._shared(part) for part in self._plan(names, kind)]
        made = []
        for part in parts:
            scales = part.scales or (1.0,) * len(part.values)
            numbers = tuple(values[at] * scale for at, scale in zip(part.values, scales, strict=True))
            step = whole(values[part.step]) if part.step != NOWHERE else None
            epoch = values[part.epoch] if part.epoch != NOWHERE else None
            made.append(Record(line, None, "", part.template, step, epoch, numbers, time))
        return tuple(made)

    def _plan(self, names: Sequence[str], kind: str) -> list[Part]:
        shape = next((one for one in SHAPES if one.keys <= set(names)), None)
        extra = _UNITS if kind == "trainer_state" else {}
        items: list[Item] = []
        for index, name in enumerate(names):
            made = item(Pair(index, name, "", True), shape.names if shape else {}, shape.units if shape else extra)
            if made:
                items.append(made)
        split = shape.split if shape else "train" if kind == "trainer_state" else ""
        return assemble(shape.name if shape else kind, items, split)

    def _shared(self, part: Part) -> Part:
        return part._replace(template=self._templates.setdefault(part.template.identity, part.template))


_UNITS: dict[str, Unit] = {}


class TrainerState:
    """The log_history of a Hugging Face Trainer. ``path`` may become that of a later checkpoint of the run."""

    def __init__(self, path: str) -> None:
        self.path, self._seen, self._rows = path, 0, _Rows()
        self._stamp: tuple[str, int, float] = ("", 0, 0.0)

    def new(self, final: bool) -> Iterator[Read]:
        """The entries of the history that were added."""
        found = os.stat(self.path)
        stamp = (self.path, found.st_size, found.st_mtime)
        if stamp == self._stamp:
            return
        with open(self.path, encoding="utf-8", errors="replace") as file:
            try:
                history = json.load(file).get("log_history", [])
            except (ValueError, AttributeError) as error:
                if not final:  # the trainer is writing it
                    return
                raise OSError(0, f"not the state of a trainer ({error})") from error
        self._stamp = stamp
        for number, entry in enumerate(history[self._seen :], self._seen + 1):
            row = {str(key): read for key, value in entry.items() if (read := _number(value)) is not None}
            yield Line(number, None, "", ""), self._rows.records(number, row, "trainer_state")
        self._seen = max(self._seen, len(history))


class Csv:
    """Lightning's metrics.csv and others with a header: each row has some of the columns."""

    def __init__(self, path: str) -> None:
        self._path, self._rows, self._position, self._line = path, _Rows(), 0, 0
        self._names: list[str] = []
        self._given = 0

    def new(self, final: bool) -> Iterator[Read]:
        """The rows that were added. Lightning rewrites the whole file when a column is added: those rows are known."""
        with open(self._path, encoding="utf-8", errors="replace", newline="") as file:
            header = file.readline()
            if not header.endswith("\n") and not final:
                return
            names = next(csv.reader([header]), [])
            if names != self._names or self._position > os.path.getsize(self._path):
                if names == self._names or not set(self._names) <= set(names):
                    self._given = 0  # another run
                self._names, self._position, self._line = names, file.tell(), 1
            file.seek(self._position)
            while (text := file.readline()).endswith("\n") or (final and text):
                self._position, self._line = file.tell(), self._line + 1
                if self._line - 1 > self._given:
                    self._given = self._line - 1
                    yield self._read(text)

    def _read(self, text: str) -> Read:
        cells = next(csv.reader([text]), [])
        row = {
            name.strip(): number
            for name, cell in zip(self._names, cells, strict=False)
            if (number := _number(cell)) is not None
        }
        return Line(self._line, None, "", text.rstrip("\r\n")), self._rows.records(self._line, row, "csv")


class Events:
    """Scalars of a TensorBoard event file."""

    def __init__(self, path: str) -> None:
        try:
            from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
        except ImportError as error:
            raise MissingPackage(TENSORBOARD) from error
        self._loader, self._rows, self._line = EventFileLoader(path), _Rows(), 0

    def new(self, final: bool) -> Iterator[Read]:
        """The scalars that were added; a second call continues where the first one ended."""
        for event in self._loader.Load():
            for value in event.summary.value:
                number = _scalar(value)
                if number is None:
                    continue
                self._line += 1
                row = {STEP: float(event.step), value.tag: number}
                records = self._rows.records(self._line, row, "tfevents", event.wall_time)
                yield Line(self._line, None, "", ""), records


def _scalar(value: Any) -> float | None:
    kind = value.WhichOneof("value")
    if kind == "simple_value":
        return float(value.simple_value)
    if kind != "tensor" or value.tensor.tensor_shape.dim:
        return None
    from tensorboard.util import tensor_util

    made = tensor_util.make_ndarray(value.tensor)
    return float(made) if made.dtype.kind in "fiu" else None


def _number(value: Any) -> float | None:
    """A value as a number, also if it is written as text; None if it is not a number."""
    if isinstance(value, bool) or value is None:
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


READERS: dict[str, Callable[[str], Structured]] = {"trainer_state": TrainerState, "csv": Csv, "tfevents": Events}
