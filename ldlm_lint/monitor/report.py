"""The final report of a monitor: series, alarms, and the sources, as text and as JSON (``ldlm-monitor/1``)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TextIO

from ldlm_lint.monitor.alarms import Alarm, Level
from ldlm_lint.monitor.detectors import BARS
from ldlm_lint.monitor.health import Health
from ldlm_lint.monitor.judging import Series
from ldlm_lint.report.cells import clean

SCHEMA = "ldlm-monitor/1"
MOST_ROWS = 24
MOST_POINTS = 200
WIDTH = 120
_STYLES = {Level.CRITICAL: "bold red", Level.WARNING: "yellow", Level.INFO: "cyan"}


def distinct(alarms: Iterable[Alarm]) -> list[Alarm]:
    """The alarms, the most severe and earliest first, without repetitions from a second source of the same run.

    A trainer writes its numbers to a file and prints them: the same problem at the same step is one alarm.
    """
    seen: dict[tuple[str, int, tuple[int, ...]], str] = {}
    kept = []
    for alarm in alarms:
        if alarm.step is not None and alarm.series:
            key = alarm.kind, alarm.step, alarm.ranks
            if seen.setdefault(key, alarm.source) != alarm.source:
                continue
        kept.append(alarm)
    return sorted(kept, key=lambda one: (-one.level, one.source, one.line))


def place(alarm: Alarm) -> str:
    """Where an alarm is: ``train.log:1201 (step 1200, rank 0)``."""
    inside = [f"step {alarm.step}"] if alarm.step is not None else []
    if alarm.ranks:
        shown = ", ".join(map(str, alarm.ranks[:8])) + (" …" if len(alarm.ranks) > 8 else "")
        inside.append(f"rank{'s' if len(alarm.ranks) > 1 else ''} {shown}")
    return clean(f"{alarm.source}:{alarm.line}" + (f" ({', '.join(inside)})" if inside else ""))


def write(health: Health, stream: TextIO, *, quiet: bool = False) -> None:
    """Write the report; ``quiet`` leaves out the series."""
    from rich.console import Console
    from rich.text import Text

    console = Console(file=stream, highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console.width = WIDTH
    if not quiet:
        table(health, console)
    for alarm in distinct(health.book.alarms):
        style = _STYLES[alarm.level]
        head = Text.assemble((alarm.level.word, style), " ", (alarm.kind, "bold"), f"  {place(alarm)}")
        console.print(head, soft_wrap=True)
        for line in told(alarm):
            console.print(f"    {line}", soft_wrap=True)
    console.print(Text(summary_line(health), "bold"), soft_wrap=True)


def told(alarm: Alarm) -> Iterator[str]:
    """The sentences of an alarm: the observation, its frequency, its prevention."""
    yield clean(alarm.message)
    if alarm.count > 1:
        last = f"step {alarm.last_step}" if alarm.last_step is not None else f"line {alarm.last_line}"
        yield f"seen {alarm.count} times, the last time at {last}"
    if alarm.rules and alarm.level > Level.INFO:
        yield f"lint rules that find possible causes: {', '.join(alarm.rules)} (ldlm-lint explain {alarm.rules[0]})"


def table(health: Health, console: Any) -> None:
    """Print the table of series."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    chosen, left = shown(health)
    if not chosen:
        return
    rows = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name, justify in (("series", "left"), ("values", "right"), ("first", "right"), ("last", "right")):
        rows.add_column(name, justify=justify, overflow="fold")  # type: ignore[arg-type]
    for name in ("min", "median"):
        rows.add_column(name, justify="right")
    rows.add_column("trend", no_wrap=True)
    for label, one in zip(labels(chosen), chosen, strict=True):
        curve = one.curve
        count = f"{curve.count:,}" + (f" + {curve.nonfinite:,} nan/inf" if curve.nonfinite else "")
        unit = one.key.named.unit
        first, low, median = (figure(value, unit) for value in (curve.first, curve.low, curve.median))
        rows.add_row(Text(clean(label)), count, first, latest(one), low, median, curve.sparkline(20))
    console.print(rows)
    if left:
        names = unread(health)
        named = f": {listed(names)} (not read as a known quantity; --json has the values)" if names else " (all of them in --json)"
        console.print(clean(f"and {left} more series{named}\n"), soft_wrap=True)


def labels(chosen: Sequence[Series]) -> list[str]:
    """Short distinct names of the series: with their source, the log's own name, the bar that they are from."""
    many = len({one.key.source for one in chosen}) > 1
    shorts = Counter((one.key.source, one.key.short) for one in chosen)
    found = [one.key.short if shorts[one.key.source, one.key.short] == 1 else one.key.label for one in chosen]
    found = [f"{one.key.source}: {label}" if many else label for label, one in zip(found, chosen, strict=True)]
    again = Counter(found)
    return [f"{label}{bar(one)}" if again[label] > 1 else label for label, one in zip(found, chosen, strict=True)]


def unread(health: Health) -> list[str]:
    """The names of the columns that are not a known quantity."""
    return list(dict.fromkeys(one.key.named.raw for one in health.series if not one.key.named.key))


def listed(names: Sequence[str], most: int = 8) -> str:
    """Names as text.

    >>> listed(["a", "b", "c"], 2)
    '`a`, `b` and 1 more'
    """
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(f"`{one}`" for one in names[:most]) + rest


def bar(one: Series) -> str:
    """The progress bar of a series, as the rest of a label; empty if there is none with a name."""
    shape = one.key.template.shape
    return f", bar {shape}" if shape and one.key.template.name in BARS else ""


def shown(health: Health) -> tuple[list[Series], int]:
    """The series with a canonical name, those that are watched first, and how many others there are."""
    order = (
        "loss",
        "grad_norm",
        "lr",
        "tokens_per_s",
        "samples_per_s",
        "iterations_per_s",
        "step_time_s",
        "data_time_s",
    )
    every = [one for one in health.series if one.curve.count or one.curve.nonfinite]
    named = [one for one in every if one.key.named.key] or every
    named.sort(key=lambda one: order.index(one.key.named.key) if one.key.named.key in order else len(order))
    chosen = named[:MOST_ROWS]
    return chosen, len(every) - len(chosen)


def figure(value: float, unit: str = "") -> str:
    """A value for a table: five significant digits; a dash if there is none."""
    if not math.isfinite(value):
        return "-"
    return f"{value / 2**30:.4g} GiB" if unit == "B" else f"{value:.5g}"


def latest(one: Series) -> str:
    """The last value of a series as the log has it: ``nan`` and ``inf`` too."""
    value = one.trace.latest
    return figure(value, one.key.named.unit) if math.isfinite(value) else f"{value:g}"


def counts(alarms: Sequence[Alarm]) -> dict[str, int]:
    """How many alarms each level has."""
    return {level.word: sum(one.level is level for one in alarms) for level in sorted(Level, reverse=True)}


def summary_line(health: Health) -> str:
    """One line: alarms, notes, and the sources."""
    alarms = distinct(health.book.alarms)
    number = counts(alarms)
    grave = number["critical"] + number["warning"]
    read = f"{sum(one.records for one in health.sources.values()):,} records in {_count(len(health.sources), 'source')}"
    notes = f", {_count(number['info'], 'note')}" if number["info"] else ""
    if not grave:
        return f"No alarms{notes}; {read}."
    return f"{_count(grave, 'alarm')} ({number['critical']} critical, {number['warning']} warning){notes}; {read}."


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' if number != 1 else ''}"


def document(health: Health) -> dict[str, Any]:
    """The report as plain JSON values, as in docs/monitor.schema.json. Non-finite values are null."""
    alarms = distinct(health.book.alarms)
    return {
        "schema": SCHEMA,
        "sources": [{"name": one.name, "lines": one.lines, "records": one.records} for one in health.sources.values()],
        "series": [_series(one) for one in health.series],
        "alarms": [_alarm(one) for one in alarms],
        "summary": counts(alarms),
    }


def _series(one: Series) -> dict[str, Any]:
    key, curve = one.key, one.curve
    every = max(1, -(-len(curve.values) // MOST_POINTS))
    return {
        "source": key.source,
        "rank": key.rank,
        "actor": key.actor,
        "template": key.template.name,
        "split": key.template.split,
        "key": key.named.key,
        "raw": key.named.raw,
        "unit": key.named.unit,
        "count": curve.count,
        "nonfinite": curve.nonfinite,
        "first": plain(curve.first),
        "last": plain(one.trace.latest),
        "median": plain(curve.median),
        "min": plain(curve.low),
        "max": plain(curve.high),
        "points": [list(one) for one in zip(curve.steps[::every], curve.values[::every], strict=True)],
    }


def _alarm(one: Alarm) -> dict[str, Any]:
    numbers = {name: plain(value) if isinstance(value, float) else value for name, value in one.numbers.items()}
    return {
        "kind": one.kind,
        "title": one.title,
        "level": one.level.word,
        "source": one.source,
        "series": one.series,
        "line": one.line,
        "step": one.step,
        "detected_line": one.detected,
        "last_line": one.last_line,
        "last_step": one.last_step,
        "time": one.time,
        "ranks": list(one.ranks),
        "count": one.count,
        "message": one.message,
        "numbers": numbers,
        "rules": list(one.rules),
    }


def plain(value: float) -> float | None:
    """The value, or None if JSON cannot represent it."""
    return value if math.isfinite(value) else None
