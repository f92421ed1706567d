"""Measurements over several lines: tables with one quantity per row, and lists below a step (OLMo, Coqui TTS)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ldlm_lint.monitor.dicts import says_something
from ldlm_lint.monitor.numbers import MARK
from ldlm_lint.monitor.pairs import Pair, item
from ldlm_lint.monitor.plans import NOWHERE, Item, Part, assemble
from ldlm_lint.monitor.records import Column, Line, Record, Template
from ldlm_lint.monitor.values import Commas

_N = MARK
# OpenAI's logger (baselines, guided-diffusion) and Stable-Baselines3: `| loss     | 0.0123 |`, groups as `| train/ | |`.
_ROW = re.compile(rf"^ *\| *(?P<key>[^|{_N}]*[^|{_N} ]) *\|{_N} *\|$")
_GROUP = re.compile(r"^ *\| *(?P<key>[\w ]+/) *\| *\|$")
_HEAD = re.compile(rf"\[step=(?P<step>{_N})(?:/{_N})?(?:, ?epoch=(?P<epoch>{_N})(?:/{_N})?)?(?:,[^\]]*)?\]$")
_INDENTED = re.compile(rf"^ +(?P<key>[A-Za-z][^=|]*)={_N} *$")
_TTS_HEAD = re.compile(rf"--> .*-- STEP:(?P<batch>{_N})/{_N} -- GLOBAL_STEP:(?P<step>{_N})(?P<epoch>$)")
_TTS_ROW = re.compile(rf"^ +\| > (?P<key>[\w/.]+):{_N}(?: +\({_N}\))?$")
_NAMES = {
    "samples": "samples",
    "current_lr": "lr",
    "optim/total_grad_norm": "grad_norm",
    "optim/total_grad_norm_": "grad_norm",
    "train/ce_loss": "loss",
    "train/loss": "loss",
    "train/learning_rate": "lr",
    "optim/learning_rate_group0": "lr",
    "optim/lr": "lr",
    "throughput/device/tokens_per_second": "tokens_per_s",
    "throughput/device/tps": "tokens_per_s",
    "throughput/device/batches_per_second": "iterations_per_s",
    "throughput/device/bps": "iterations_per_s",
    "throughput/total_tokens": "tokens",
    "throughput/total_tokens_seen": "tokens",
    "time/total_timesteps": "step",
    "time/iterations": "",
}
# More rows than any logger writes: a different table, which must not be kept.
_MOST = 512


class Row(NamedTuple):
    """A line of one quantity: of a ``table``, or below a step. ``number`` is the index of its value."""

    table: bool
    key: str
    number: int = -1


class Head(NamedTuple):
    """A line with the step of the rows below it, as indices of its numbers."""

    step: int
    epoch: int


def row(text: str) -> Row | None:
    """The kind of row of a skeleton; None if it is not a row."""
    found = _ROW.match(text)
    if found:
        return Row(True, found["key"])
    found = _TTS_ROW.match(text)
    if found:
        return Row(False, found["key"], 0)
    found = _INDENTED.match(text)
    return Row(False, found["key"].replace(_N, " 0")) if found else None


def head(text: str) -> Head | None:
    """The index of the step for following rows in a skeleton; None if there is none."""
    found = _HEAD.search(text) or _TTS_HEAD.search(text)
    if not found:
        return None
    return Head(*(text.count(_N, 0, found.start(name)) if found[name] else NOWHERE for name in ("step", "epoch")))


class Blocks:
    """The table or list currently read from one process."""

    def __init__(self, interned: Callable[[Template], Template], commas: Commas) -> None:
        self._interned = interned
        self._commas = commas
        self._first: Line | None = None
        self._group = ""
        self._headed: tuple[float | None, float | None] | None = None
        self._rank: int | None = None
        self._rows: list[tuple[str, float]] = []

    @property
    def open(self) -> bool:
        """Whether further lines may belong to a block."""
        return self._first is not None

    def takes(self, line: Line, kind: Row) -> bool:
        """Whether a row belongs here: rows of a table are alone, indented ones below their step."""
        if self._first and (line.actor != self._first.actor or line.rank != self._first.rank):
            return False
        return kind.table if self._headed is None else not kind.table

    def begin(self, line: Line, kind: Head, numbers: Sequence[str], rank: int | None) -> None:
        """Open a list below a step."""
        self._first, self._rank, self._rows = line, rank, []
        self._headed = tuple(self._commas.number(numbers[at], True) if at != NOWHERE else None for at in kind)  # type: ignore[assignment]

    def group(self, line: Line) -> bool:
        """Whether a line without numbers is part of a table; the rows below a group have its name before theirs."""
        found = _GROUP.match(line.text)
        if found:
            self._first = self._first or line
            self._group = found["key"].strip()
        return bool(found)

    def add(self, line: Line, kind: Row, number: str) -> None:
        """One more row."""
        self._first = self._first or line
        key = f"{self._group}{kind.key}"
        made = _item(0, key)
        said = self._commas.column(number, Column(made.key if made else "", key))
        if len(self._rows) < _MOST and said is not None:
            self._rows.append((key, said))

    def close(self) -> tuple[Record, ...]:
        """The record of the block, which ends here."""
        first, rows, headed = self._first, self._rows, self._headed
        rank = self._rank if headed else None
        self._first, self._rows, self._headed, self._group, self._rank = None, [], None, "", None
        if first is None or len(rows) < (1 if headed else 2):
            return ()
        items = [made for index, (key, _) in enumerate(rows) if (made := _item(index, key))]
        if not headed and not says_something(items):
            return ()
        name = "list" if headed else "table"
        parts = assemble(name, items, "train" if headed and not _checks(rows) else "")
        return tuple(self._record(part, first, rows, headed, rank) for part in parts)

    def _record(
        self, part: Part, first: Line, rows: list[tuple[str, float]], headed: object, rank: int | None
    ) -> Record:
        def at(index: int) -> float | None:
            return rows[index][1] if index != NOWHERE else None

        step, epoch = headed if isinstance(headed, tuple) else (at(part.step), at(part.epoch))
        scales = part.scales or (1.0,) * len(part.values)
        values = tuple(rows[index][1] * scale for index, scale in zip(part.values, scales, strict=True))
        template = self._interned(part.template)
        said = first.rank if first.rank is not None else rank
        return Record(first.line, said, first.actor, template, whole(step), epoch, values)


def _item(index: int, key: str) -> Item | None:
    bare = re.sub(r" ?\(group 0\)$", "", key)
    made = item(Pair(index, bare, "", True), _NAMES)
    return made._replace(raw=key) if made else None


def _checks(rows: Sequence[tuple[str, float]]) -> bool:
    return all(key.startswith("eval/") for key, _ in rows)


def whole(number: float | None) -> int | None:
    """A counter as an integer; None if it is not one (`nan`, or a time mistaken for a count)."""
    return int(number) if number is not None and number.is_integer() else None
