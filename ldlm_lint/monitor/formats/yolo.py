"""The tables of YOLOv5 and ultralytics: a heading, then rows that are redrawn during the epoch."""

from __future__ import annotations

import re

from ldlm_lint.monitor.formats import bars
from ldlm_lint.monitor.names import EPOCH
from ldlm_lint.monitor.numbers import MARK
from ldlm_lint.monitor.plans import Item, Part, assemble

_HEADING = re.compile(r"^ *Epoch +(?:GPU_mem|gpu_mem) +(?P<names>\w+(?: +\w+)*)$")
_ROW = re.compile(rf"^{MARK}/{MARK}{MARK}[GM](?P<columns>{MARK}+): ?(?:{MARK}%)")
# Programs divide by 1e9 here, not by a power of 1024.
_GIGABYTE = 1e9
_COUNTS = frozenset(("instances", "labels", "size", "img_size", "imgsz"))


def heading(text: str) -> tuple[str, ...]:
    """The names of the columns after the memory's; empty for a line that is not a heading."""
    found = _HEADING.match(text) if "PU_mem" in text or "gpu_mem" in text else None
    return tuple(found["names"].split()) if found else ()


def is_row(text: str) -> bool:
    """Whether a skeleton is that of a row."""
    return text.startswith(f"{MARK}/{MARK}{MARK}") and bool(_ROW.match(text))


def read(text: str, names: tuple[str, ...]) -> list[Part] | None:
    """The record of a row below a heading; None if their columns differ."""
    found = _ROW.match(text)
    if not found or len(found["columns"]) != len(names):
        return None
    items = [Item(0, EPOCH, "epoch"), Item(2, "memory_bytes", "GPU_mem", "B", _GIGABYTE)]
    items += [Item(3 + index, "", name) for index, name in enumerate(names) if name.lower() not in _COUNTS]
    first = 3 + len(names) + 1
    return assemble("yolo", items + bars.position(text, first), "train")
