"""Columns that are the time of a step although the log calls them `t`, `dt`, `time` or has them in brackets.

The name alone says little: a time may be that of a step or since the start. The values decide.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from ldlm_lint.monitor.names import UNITS, plain
from ldlm_lint.monitor.records import Column, Template

KEY = "step_time_s"
# Values after which it is decided, and after which it is decided for good.
FEWEST, MOST = 8, 64
# What programs call a time that they print without a unit. No other fact tells a time from another number.
_SPOKEN = frozenset(("t", "dt", "time", "took", "elapsed", "duration", *(name for name, unit in UNITS.items() if unit.base == "s")))
# A part of a step, or something beside the steps.
_OTHER = re.compile(r"data|load|fetch|wait|forward|fwd|backward|bwd|optim|eval|val|test|save|eta|remain|left|total")
_SPEEDS = frozenset((KEY, "data_time_s", "samples_per_s", "tokens_per_s", "iterations_per_s"))
# Without a unit, larger numbers are rather milliseconds.
_LONGEST_UNSAID = 30.0
_MOST_RISES = 0.8
_WIDEST, _WIDEST_UNSAID = 1.5, 0.5


def candidate(template: Template) -> int | None:
    """The column that may be the time of a step: the only one, of a line that does not print its speed."""
    if any(one.key in _SPEEDS for one in template.columns) or template.split == "val":
        return None
    found = [index for index, one in enumerate(template.columns) if _may_be(one)]
    return found[0] if len(found) == 1 else None


def _may_be(column: Column) -> bool:
    name = plain(column.raw)
    return not column.key and not _OTHER.search(name) and (column.unit == "s" or (not column.unit and name in _SPOKEN))


def behaves(values: Sequence[float], column: Column) -> bool:
    """Whether values are around one level, as the times of steps are: those since the start rise, those to the end fall."""
    if len(values) < FEWEST or min(values) <= 0:
        return False
    rises = sum(one < other for one, other in pairwise(values))
    falls = sum(one > other for one, other in pairwise(values))
    if max(rises, falls) > _MOST_RISES * (len(values) - 1):
        return False
    first, middle, last = statistics.quantiles(values, n=4)
    # A setting, such as a temperature, is always the same.
    if not column.unit and (middle > _LONGEST_UNSAID or min(values) == max(values)):
        return False
    return last - first <= (_WIDEST if column.unit else _WIDEST_UNSAID) * middle


def promoted(template: Template, column: int) -> Template:
    """The template with this column as the time of a step."""
    columns = list(template.columns)
    columns[column] = columns[column]._replace(key=KEY, unit="s")
    return replace(template, columns=tuple(columns))
