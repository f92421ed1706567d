"""The meaning of the lines of one skeleton: which number is which quantity. Computed once, applied to each line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ldlm_lint.monitor.names import EPOCH, SPLIT, STEP, STEPS, meaning, plain
from ldlm_lint.monitor.records import UNITS, Column, Template

NOWHERE = -1


class Item(NamedTuple):
    """One number of a line with a meaning: a canonical key (also `STEP`, `EPOCH`) or only its own name."""

    index: int  # type: ignore[assignment]  # nobody asks an item for the index of a value
    key: str
    raw: str
    unit: str = ""
    scale: float = 1.0
    split: str = ""


class Part(NamedTuple):
    """One record of a line: the indices of its numbers. ``scales`` is None if no value is converted.

    ``total`` is the index of a progress bar's total, which distinguishes its series from another bar's; ``varies``:
    nearly equal totals belong to the same bar.
    """

    template: Template
    step: int
    epoch: int
    values: tuple[int, ...]
    scales: tuple[float, ...] | None
    total: int = NOWHERE
    varies: bool = False


class Plan(NamedTuple):
    """All values in the lines of a skeleton. ``rank`` and ``time`` are indices too (year, month, day, hour ...)."""

    parts: tuple[Part, ...] = ()
    rank: int = NOWHERE
    time: tuple[int, ...] = ()


NOTHING = Plan()

# Used as the loss if a line only has its mean.
_MEANS = {"loss_avg", "avgloss", "epoch_loss", "loss_epoch"}
# Of one of several devices; where a line has the figure of all of them too, that one has the name.
_OF_ONE = re.compile(r"per_gpu|/gpu|/device|per_device|tgs")
_MEAN = re.compile(r"(?:avg|average|mean|avr)_(.+)$")


def assemble(name: str, items: Iterable[Item], split: str = "", exact: bool = True, shape: str = "") -> list[Part]:
    """The records of a line from its numbers: one for each split it names, with its step and epoch in each."""
    items = sorted(items)
    steps = [item for item in items if item.key == STEP]
    steps.sort(key=lambda item: STEPS.index(plain(item.raw)) if plain(item.raw) in STEPS else len(STEPS))
    epochs = [item for item in items if item.key == EPOCH]
    epochs.sort(key=lambda item: plain(item.raw) == "ep")  # next to another counter it counts episodes
    step, epoch = (found[0].index if found else NOWHERE for found in (steps, epochs))
    rest = [item for item in items if item.index not in (step, epoch)]
    rest = [item._replace(key="") if item.key in (STEP, EPOCH) else item for item in rest]
    groups: dict[str, list[Item]] = {}
    for item in rest:
        groups.setdefault(item.split or split, []).append(item)
    # A value without a split belongs to the line's training: its learning rate, its speed.
    if "" in groups and "train" in groups:
        groups["train"] = sorted(groups.pop("") + groups["train"])
    return [_part(name, key, group, step, epoch, exact, shape) for key, group in groups.items()]


def _part(name: str, split: str, items: list[Item], step: int, epoch: int, exact: bool, shape: str) -> Part:
    items = _unique(items)
    columns = tuple(Column(item.key, item.raw, UNITS.get(item.key) or item.unit) for item in items)
    scales = tuple(item.scale for item in items)
    return Part(
        Template(name, split, columns, exact, shape),
        step,
        epoch,
        tuple(item.index for item in items),
        None if all(scale == 1.0 for scale in scales) else scales,
    )


def _unique(items: Sequence[Item]) -> list[Item]:
    """The items with unique names; two with one canonical key both lose it, since they are ambiguous."""
    keys = [item.key for item in items]
    if "loss" not in keys:
        items = [item._replace(key="loss") if _is_mean_loss(item) else item for item in items]
        keys = [item.key for item in items]
    made: list[Item] = []
    seen: dict[str, int] = {}
    for item in items:
        key = item.key if keys.count(item.key) == 1 else _first_name(item, items)
        count = seen[item.raw] = seen.get(item.raw, 0) + 1
        made.append(item._replace(key=key, raw=item.raw if count == 1 else f"{item.raw}#{count}"))
    return made


def _is_mean_loss(item: Item) -> bool:
    name = SPLIT.sub("", plain(item.raw))
    found = _MEAN.match(name)
    return not item.key and (name in _MEANS or bool(found and meaning(found[1]).key == "loss"))


def _first_name(item: Item, items: Sequence[Item]) -> str:
    """The canonical key of an item of several with that key: the plainest name has it, if there is one."""
    rivals = [other for other in items if other.key == item.key]
    same = [other for other in rivals if plain(other.raw) == item.key]
    chosen = same if len(same) == 1 else [other for other in rivals if plain(other.raw) == f"total_{item.key}"]
    chosen = chosen or [other for other in rivals if not _OF_ONE.search(plain(other.raw))]
    return item.key if chosen == [item] else ""
