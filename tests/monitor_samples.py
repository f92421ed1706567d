"""Sample lines of public training logs with what they say, and how well a reader reads them.

`tests/monitor/samples.json` are the lines that the formats were written with. `tests/monitor/heldout.json` are lines
whose expectations were written before the reader saw them, in five rounds: 95.8, 92.9, 85.0, 90.8 and 92.7 % of their
fields were right at first sight, three of 926 wrong. `heldout6.json` is a sixth round with other searches: 593 of 636
fields (93.2 %), two wrong; `heldout7.json` a seventh, after that was mended: 131 of 148 (88.5 %), one wrong;
`heldout8.json` an eighth, of prints by hand: 99 of 100;
`heldout9.json` a ninth, with decimal commas and dictionaries behind a loss: 157 of 160;
`heldout10.json` a tenth, of 64 programs' prints: 169 of 181, three wrong. The reader was mended after each round, so they guard what
works now. A key of an expectation is a canonical one, with ``val.`` before it where it is of the validation, or ``=``
and a name of the log's own.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ldlm_lint.monitor.reader import LogReader
from ldlm_lint.monitor.records import Record

FOLDER = Path(__file__).parent / "monitor"


@dataclass
class Score:
    """Fields that were right, were missing, and were wrong: another value, or a canonical one that the line does not say."""

    right: int = 0
    missing: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


def samples(name: str) -> list[dict[str, Any]]:
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))


def records(text: str, **options: Any) -> list[Record]:
    reader = LogReader(**options)
    read = [*reader.read(text.rstrip("\n") + "\n"), *reader.close()]
    return [record for _, found in read for record in found]


def table(found: list[Record]) -> dict[str, list[float]]:
    """The values by their keys, as expectations write them."""
    values: dict[str, list[float]] = {}
    for record in found:
        before = "val." if record.split == "val" else ""
        named = [(name, getattr(record, name)) for name in ("rank", "step", "epoch")]
        named += [(before + one.key, one.value) for one in record.fields if one.key]
        named += [(f"={one.raw}", one.value) for one in record.fields]
        for key, value in named:
            if value is not None:
                values.setdefault(key, []).append(float(value))
    return values


def score(sample: dict[str, Any], into: Score) -> None:
    """Compare one sample with what is read of it."""
    found = table(records(sample["text"]))
    wanted: dict[str, list[float]] = {}
    for expectation in sample["expect"]:
        for key, value in expectation.items():
            wanted.setdefault(key, []).append(float(value))
    for key, values in wanted.items():
        # The timings of a validation are its own; an expectation may leave the split out where nothing else is said.
        have = found.get(key) or (found.get(f"val.{key}", []) if f"val.{key}" not in wanted else [])
        for value in values:
            if any(_same(value, one) for one in have):
                into.right += 1
            else:
                (into.wrong if have else into.missing).append(f"{key}={value} (read {have}): {sample['text'][:120]}")
    for key, have in found.items():
        if not key.startswith("=") and key not in wanted and key.removeprefix("val.") not in wanted:
            into.wrong.append(f"{key}={have} is not said: {sample['text'][:120]}")


def _same(one: float, other: float) -> bool:
    return (math.isnan(one) and math.isnan(other)) or one == other or math.isclose(one, other, rel_tol=1e-6)
