"""The processes of a run side by side: their progress, their speed, and which of them are behind."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ldlm_lint.monitor.alarms import Alarm, Level
from ldlm_lint.monitor.health import Health
from ldlm_lint.monitor.judging import Series

SLOWER = 1.15
"""A process whose step takes so many times as long as the middle one's is called slow."""
_LATE = 32
"""The values of the pace that are taken, from the end."""
_TIMES, _RATES = ("step_time_s",), ("tokens_per_s", "samples_per_s", "iterations_per_s")


@dataclass(frozen=True, slots=True)
class Process:
    """One rank, or one file of a run of several: the values of its newest lines. None if unknown.

    ``behind`` counts the steps to the farthest process; ``slower`` is its time for a step over that of the middle
    process (of two, the faster one).
    """

    name: str
    step: int | None
    behind: int
    loss: float | None
    slower: float | None
    alarms: int
    culprit: bool


def processes(health: Health) -> list[Process]:
    """The processes of the run with a training series, if there are two or more; else empty."""
    found: dict[tuple[str, int | None, str], list[Series]] = {}
    for each in health.series:
        if each.key.template.split != "val" and each.trace.last is not None:
            found.setdefault((each.key.source, each.key.rank, each.key.actor), []).append(each)
    trained = {name: series for name, series in found.items() if any(each.key.named.key == "loss" for each in series)}
    if len(trained) < 2:
        return []
    steps = {name: _step(series) for name, series in trained.items()}
    farthest = max((step for step in steps.values() if step is not None), default=0)
    paces = {name: _pace(series) for name, series in trained.items()}
    known = [pace for pace in paces.values() if pace is not None]
    middle = statistics.median_low(known) if len(known) > 1 else None
    told_apart = len({(rank, actor) for _, rank, actor in trained}) == len(trained)
    culprits = {rank for alarm in health.book.alarms for rank in _culprits(alarm)}
    rows = []
    for (source, rank, actor), series in trained.items():
        step, pace = steps[source, rank, actor], paces[source, rank, actor]
        concerned = [
            alarm
            for alarm in health.book.at_least(Level.WARNING)
            if (rank in alarm.ranks if rank is not None else alarm.source == source)
        ]
        rows.append(
            Process(
                _name(source, rank, actor, told_apart),
                step,
                farthest - step if step is not None else 0,
                next((each.trace.latest for each in series if each.key.named.key == "loss"), None),
                pace / middle if pace and middle else None,
                len(concerned),
                rank in culprits,
            )
        )
    return sorted(rows, key=lambda row: [int(part) if part.isdigit() else part for part in _parts(row.name)])


def remarks(rows: Sequence[Process]) -> list[str]:
    """Sentences about processes that differ from the others."""
    said = [f"{row.name} held the others up." for row in rows if row.culprit]
    behind = [row for row in rows if row.behind > 1]
    if behind and len(behind) < len(rows):
        last = max(behind, key=lambda row: row.behind)
        said.append(f"{last.name} is {last.behind:,} steps behind the farthest.")
    slow = [row for row in rows if row.slower is not None and row.slower >= SLOWER]
    if slow and len(slow) <= len(rows) / 2:
        worst = max(slow, key=lambda row: row.slower or 0.0)
        said.append(f"A step of {worst.name} takes {worst.slower:.2f} times as long as that of the middle rank.")
    return said or ["No rank differs from the others in its step or speed."]


def _name(source: str, rank: int | None, actor: str, told_apart: bool) -> str:
    words = [source] if not told_apart or (rank is None and not actor) else []
    words += [f"rank {rank}"] if rank is not None else []
    return " ".join([*words, *([actor] if actor else [])])


def _parts(name: str) -> list[str]:
    """The name with its numbers apart, so that rank 10 comes after rank 9; text and numbers alternate."""
    return re.split(r"(\d+)", name)


def _step(series: Iterable[Series]) -> int | None:
    steps = [each.trace.last.step for each in series if each.trace.last is not None and each.trace.last.step is not None]
    return max(steps, default=None)


def _pace(series: Iterable[Series]) -> float | None:
    """Seconds of a step, or of a unit of work, in the newest values."""
    for each in series:
        key = each.key.named.key
        if key in (*_TIMES, *_RATES) and each.curve.values:
            late = [value for value in each.curve.values[-_LATE:] if math.isfinite(value) and value > 0]
            if late:
                return statistics.median(late) if key in _TIMES else 1 / statistics.median(late)
    return None


def _culprits(alarm: Alarm) -> list[int]:
    named = alarm.numbers.get("culprits", [])
    return named if isinstance(named, list) else []
