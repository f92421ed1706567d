"""Lines that are a dictionary, or end in one: JSON of any logger, and the reprs that trainers print."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ldlm_lint.monitor.names import EPOCH, STEP, Unit, meaning
from ldlm_lint.monitor.numbers import MARK
from ldlm_lint.monitor.pairs import Pair, item
from ldlm_lint.monitor.plans import Item, Part, assemble

_START = re.compile(r"\{\s*['\"]")
# np.float64(1.0), tensor(1.0, device='cuda:0'), Array(1., dtype=float32), array([1.0]), Decimal('1.0')
_WRAPPER = re.compile(rf"\b[A-Za-z_][\w.]*\(\s*[\[('\"]*({MARK})[\])'\"]*(?:,[^()]*(?:\([^()]*\))?[^()]*)?\)")
_NUMBER = re.compile(r"(\d+)(?: ?(%|[a-zA-Z/]+))?$")
_OF = re.compile(r"(\d+)/\d+$")
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


def read(text: str, shapes: Sequence[Shape]) -> list[Part] | None:
    """The records of a line with a dictionary; None where it has none, or one that says nothing of a training."""
    parsed = tree(text) if "{" in text else None
    if not parsed:
        return None
    values, before = parsed
    leaves = _named(values, list(_leaves(values, "")))
    names = {key for key, _, _ in leaves} | set(values)
    shape = next((one for one in shapes if one.keys <= names), None)
    made = [_item(key, index, unit, shape) for key, index, unit in leaves]
    items = [one for one in made if one]
    if not shape and not says_something(items):
        return None
    split = _said(values, before) or (shape.split if shape else "")
    where = "" if shape else before.replace(MARK, "#").strip()
    return assemble(shape.name if shape else "json", items, split, bool(shape), where)


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
    return item(Pair(index, name, unit, True), shape.names if shape else {}, shape.units if shape else {})


def says_something(items: Sequence[Item]) -> bool:
    """Whether these numbers are of a training: a loss, or something measured at a step or epoch."""
    keys = {one.key for one in items}
    if keys & {"loss", "grad_norm", "perplexity"}:
        return True
    measured = any(one.key not in ("", STEP, EPOCH, "lr") or meaning(one.raw).split for one in items)
    return bool(keys & {STEP, EPOCH}) and (measured or any("loss" in one.raw.lower() for one in items))


def _said(values: Mapping[str, Any], before: str) -> str:
    for key in _SPLIT_KEYS:
        if isinstance(values.get(key), str) and (split := _SPLITS.get(values[key].lower())):
            return split
    words = re.findall(r"[a-z]+(?:_[a-z]+)*", before.lower())
    return next((_SPLITS[word] for word in reversed(words) if word in _SPLITS), "")
