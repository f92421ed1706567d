"""Lines that are or end with a dictionary: JSON of any logger, and the reprs that trainers print."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ldlm_lint.monitor import headers
from ldlm_lint.monitor.names import EPOCH, STEP, Unit, in_table, meaning
from ldlm_lint.monitor.numbers import MARK
from ldlm_lint.monitor.pairs import Pair, item, pairs
from ldlm_lint.monitor.plans import Item, Part, assemble

if TYPE_CHECKING:
    from ldlm_lint.monitor.formats.bars import Before

_START = re.compile(r"\{\s*['\"]")
# np.float64(1.0), tensor(1.0, device='cuda:0'), Array(1., dtype=float32), array([1.0]), Decimal('1.0')
_WRAPPER = re.compile(rf"\b[A-Za-z_][\w.]*\(\s*[\[('\"]*({MARK})[\])'\"]*(?:,[^()]*(?:\([^()]*\))?[^()]*)?\)")
_NUMBER = re.compile(r"(\d+)(?: ?(%|[a-zA-Z/]+))?$")
_IN_BRACKETS = re.compile(r"([\w/]+) ?\(([\w/%]+)\)$")
_OF = re.compile(r"(\d+)/\d+$")
# Values before a line's dictionary with a certain name.
_MEASURED = frozenset(
    (STEP, EPOCH, "loss", "grad_norm", "perplexity", "tokens_per_s", "samples_per_s", "iterations_per_s")
)
_SPLIT_KEYS = ("mode", "split", "phase", "stage", "dataset", "type", "kind")
_NAME_KEYS = ("name", "metric", "metric_name", "tag", "key")
_SPLITS = {
    **dict.fromkeys(("train", "training", "fit", "train_inner"), "train"),
    **dict.fromkeys(("val", "valid", "validation", "eval", "evaluation", "test"), "val"),
}


@dataclass(frozen=True)
class Shape:
    """A known logger's dictionaries: those with all ``keys``. ``names`` and ``units`` as of a `Format`."""

    name: str
    keys: frozenset[str]
    names: Mapping[str, str] = field(default_factory=dict)
    units: Mapping[str, Unit] = field(default_factory=dict)
    split: str = ""


def tree(text: str) -> tuple[Mapping[str, Any], str] | None:
    """The dictionary in a skeleton with the index of each number in its place, and the text before it."""
    found = _START.search(text)
    if not found:
        return None
    end = text.rfind("}")
    body = _WRAPPER.sub(MARK, text[found.start() : end + 1])
    if body.count(MARK) != text.count(MARK, found.start(), end + 1):
        return None
    pieces = body.split(MARK)
    first = text.count(MARK, 0, found.start())
    made = "".join(f"{piece}{first + index}" for index, piece in enumerate(pieces[:-1])) + pieces[-1]
    for parse in (json.loads, ast.literal_eval):
        try:
            value = parse(made)
        except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
            continue
        return (value, text[: found.start()]) if isinstance(value, dict) else None
    return None


def read(text: str, shapes: Sequence[Shape], bar_of: Callable[[str], Before]) -> list[Part] | None:
    """The records of a line with a dictionary; None if it has none, or one without training values.

    ``bar_of`` gives the step and the pace of a progress bar in a text, and where that begins.
    """
    parsed = tree(text) if "{" in text else None
    if not parsed:
        return None
    values, before = parsed
    leaves = _named(values, list(_leaves(values, "")))
    names = {key for key, _, _ in leaves} | set(values)
    shape = next((one for one in shapes if one.keys <= names), None)
    items = [one for key, index, unit in leaves if (one := _item(key, index, unit, shape))]
    bar, at, total, varies = bar_of(before)
    items += _said(text, before[:at], items)
    if not shape and not says_something(items, _mode(values)):
        return None
    split = _mode(values) or _spoken(before[:at]) or (shape.split if shape else "")
    if bar:
        items += [one for one in bar[:1] if not any(item.key == STEP for item in items)]
    where = "" if shape else before[:at].replace(MARK, "#").strip()
    made = assemble(shape.name if shape else "json", items, split, bool(shape), where)
    # The pace of a bar is a record of its own: the dictionary's series are the same as without a bar.
    paced = assemble("tqdm", bar, split) if len(bar) > 1 and not _paced(items) else []
    return made + [part._replace(total=total, varies=varies) for part in paced]


def _said(text: str, before: str, items: Sequence[Item]) -> list[Item]:
    """Measurements before a dictionary that it does not contain: ``Loss: 1.23 | {...}``, ``step 5: {...}``."""
    first = before.count(MARK)
    if not first:
        return []
    texts = before.split(MARK)
    found = pairs(texts, frozenset((headers.rank(text),)))
    made = [one for pair in found if pair.index < first and (one := item(pair))]
    keys = {one.key for one in items}
    return [one for one in made if one.key in _MEASURED and one.key not in keys]


def _named(values: Mapping[str, Any], leaves: list[tuple[str, int, str]]) -> list[tuple[str, int, str]]:
    """The leaves of a row that names its one quantity: ``{"name": "loss", "data": {"step": 1, "value": 3.9}}``."""
    name = next((values[key] for key in _NAME_KEYS if isinstance(values.get(key), str)), "")
    if not name or sum(path.rpartition("/")[2] == "value" for path, _, _ in leaves) != 1:
        return leaves
    last = [(path.rpartition("/")[2], index, unit) for path, index, unit in leaves]
    return [(name if path == "value" else path, index, unit) for path, index, unit in last]


def _leaves(value: Any, path: str) -> Iterator[tuple[str, int, str]]:
    """(path, index of the number, unit) of all numbers, the first one of a list."""
    if isinstance(value, bool) or value is None:
        return
    if isinstance(value, int):
        yield path, value, ""
    elif isinstance(value, str) and (found := _NUMBER.match(value)):
        yield path, int(found[1]), (found[2] or "").lower()
    elif isinstance(value, str) and (part := _OF.match(value)):
        yield path.split("/max_")[0].split("/total")[0], int(part[1]), ""
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}/{key}" if path else str(key))
    elif isinstance(value, list) and len(value) >= 1:
        inner = list(_leaves(value[0], path))
        yield from inner if len(value) == 1 or path.endswith(("lr", "learning_rate")) else ()


def _item(key: str, index: int, unit: str, shape: Shape | None) -> Item | None:
    # wandb's own keys and those of loggers that nest: {"train": {"loss": 1}} is train/loss.
    name = key.lstrip("_") if key in ("_step", "_epoch") else key
    if key in ("_timestamp", "_runtime", "_wandb/runtime", "timestamp", "wall_time", "ts"):
        return None
    names, units = (shape.names, shape.units) if shape else ({}, {})
    # `memory(GiB)`, `train_speed(s/it)`
    if not unit and (said := _IN_BRACKETS.match(name)) and in_table(said[2].lower()):
        made = item(Pair(index, said[1], said[2].lower(), True), names, units)
        if made and made.key:
            return made._replace(raw=name)
    return item(Pair(index, name, unit, True), names, units)


def says_something(items: Sequence[Item], split: str = "") -> bool:
    """Whether these numbers belong to a training: a loss, or a value measured at a step or epoch, or in a ``split``."""
    keys = {one.key for one in items}
    if keys & {"loss", "grad_norm", "perplexity"}:
        return True
    measured = any(one.key not in ("", STEP, EPOCH, "lr") or meaning(one.raw).split for one in items) or split
    return bool(keys & {STEP, EPOCH}) and (bool(measured) or any("loss" in one.raw.lower() for one in items))


def _paced(items: Sequence[Item]) -> bool:
    return any(one.key in ("step_time_s", "iterations_per_s") for one in items)


def _mode(values: Mapping[str, Any]) -> str:
    for key in _SPLIT_KEYS:
        if isinstance(values.get(key), str) and (split := _SPLITS.get(values[key].lower())):
            return split
    return ""


def _spoken(before: str) -> str:
    words = re.findall(r"[a-z]+(?:_[a-z]+)*", before.lower())
    return next((_SPLITS[word] for word in reversed(words) if word in _SPLITS), "")
