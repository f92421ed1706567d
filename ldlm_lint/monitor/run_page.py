"""A run as an HTML page: its state as text, its curves with marked alarms, what to do next, ranks and series.

The same page shows a finished run from disk and a growing one from `serving.Server`, which sends the part ``run`` of it
again when something is new.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ldlm_lint.monitor.advice import NEXT
from ldlm_lint.monitor.alarms import Alarm, Level
from ldlm_lint.monitor.health import Health
from ldlm_lint.monitor.judging import Series
from ldlm_lint.monitor.now import Now
from ldlm_lint.monitor.picture import Panel, Picture, picture
from ldlm_lint.monitor.ranks import Process, processes, remarks
from ldlm_lint.monitor.report import counts, distinct, figure, labels, latest, place, shown
from ldlm_lint.monitor.view import duration, gpu_lines
from ldlm_lint.report.html import charts
from ldlm_lint.report.html.page import environment, render

CLASSES = {Level.CRITICAL: "grave", Level.WARNING: "costly", Level.INFO: "minor"}
MOST_MARKS, MOST_POINTS, MOST_CARDS = 40, 6000, 100
"""The most alarms on the curves, points of a panel, and alarms in the list."""
STYLES, SCRIPTS = ("charts.css", "monitor.css"), ("charts.js",)


FINISHED = Now(live=False)


@dataclass(frozen=True, slots=True)
class Card:
    """An alarm in the list, with ``others`` of its kind at the same step: places and messages, of other ranks usually.

    ``command`` checks the project for possible causes; empty if no rule looks for one.
    """

    number: int
    level: str
    word: str
    kind: str
    title: str
    place: str
    message: str
    again: str
    advice: str
    command: str
    others: tuple[tuple[str, str], ...] = ()


def page(health: Health, name: str, now: Now = FINISHED) -> str:
    """The whole page. ``name`` identifies the run."""
    return page_of(name, values(health, now))


def page_of(name: str, filled: Mapping[str, Any]) -> str:
    """The whole page from its `values`."""
    live = filled["live"]
    scripts = (*SCRIPTS, "monitor.js") if live else SCRIPTS
    return render("monitor.html", styles=STYLES, scripts=scripts, connects=live, name=name, **filled)


def part(filled: Mapping[str, Any]) -> str:
    """The part of the page that changes during a run."""
    return environment().get_template("monitor_run.html").render(filled)


def values(health: Health, now: Now) -> dict[str, Any]:
    """The values for the template ``monitor_run.html``."""
    alarms = distinct(health.book.alarms)
    grave = [alarm for alarm in alarms if alarm.level > Level.INFO]
    groups = _groups(grave)
    numbers = _numbers(groups, health.book.alarms)
    cards = [_card(group, numbers[id(group[0])]) for group in groups[:MOST_CARDS]]
    made = picture(health, MOST_MARKS)
    ranks = processes(health)
    level, verdict = _verdict(health, grave, now)
    rows, left = shown(health)
    return {
        "live": now.live,
        "state": _state(health, now),
        "heard": now.heard,
        "heard_at": time.strftime("%H:%M:%S", time.localtime(now.heard)) if now.heard is not None else "",
        "ended": now.ended,
        "level": level,
        "verdict": verdict,
        "tiles": list(_tiles(health, now)),
        "sentences": list(_sentences(health, made)),
        "waiting": list(now.waiting),
        "silent": _silent(now),
        "next": cards[0] if cards else None,
        "cards": cards,
        "more_cards": len(groups) - len(cards),
        "notes": [_card([alarm], 0) for alarm in alarms if alarm.level is Level.INFO][:MOST_CARDS],
        "charts": _charts(made, numbers) if made else [],
        "chart_notes": list(made.notes) if made else [],
        "ranks": ranks,
        "rank_remarks": remarks(ranks) if ranks else [],
        "pace": any(row.slower is not None for row in ranks),
        "series": [_row(name, each) for name, each in zip(labels(rows), rows, strict=True)],
        "more_series": left,
        "sources": [_source(name, source.lines, source.records, now) for name, source in health.sources.items()],
        "gpus": list(gpu_lines(now.gpus)),
        "percent_slower": _percent_slower,
    }


def _groups(alarms: Sequence[Alarm]) -> list[list[Alarm]]:
    """The alarms, those of one kind at one step together: an event of a run is seen on each of its ranks."""
    found: dict[object, list[Alarm]] = {}
    for alarm in alarms:
        found.setdefault((alarm.kind, alarm.step) if alarm.step is not None and alarm.series else id(alarm), []).append(alarm)
    return list(found.values())


def _numbers(groups: Sequence[Sequence[Alarm]], book: Sequence[Alarm]) -> dict[int, int]:
    """The number of each alarm, by its identity: as they were found, so that it stays while the run goes on."""
    order = {id(alarm): place for place, alarm in enumerate(book)}
    placed = sorted(groups, key=lambda group: min(order[id(alarm)] for alarm in group))
    return {id(alarm): number for number, group in enumerate(placed, 1) for alarm in group}


def _card(group: Sequence[Alarm], number: int) -> Card:
    alarm, *others = group
    again = ""
    if alarm.count > 1:
        last = f"step {alarm.last_step:,}" if alarm.last_step is not None else f"line {alarm.last_line:,}"
        again = f"Seen {alarm.count:,} times, the last time at {last}."
    return Card(
        number,
        CLASSES[alarm.level],
        alarm.level.word,
        alarm.kind,
        alarm.title[:1].upper() + alarm.title[1:],
        place(alarm),
        alarm.message,
        again,
        NEXT[alarm.kind],
        f"ldlm-lint --select {','.join(alarm.rules)} ." if alarm.rules else "",
        tuple((place(other), other.message) for other in others),
    )


def _state(health: Health, now: Now) -> str:
    """``finished``, or of a followed run ``waiting``, ``silent``, ``ended`` or ``running``."""
    if not now.live:
        return "finished"
    if not health.sources:
        return "waiting"
    if now.ended:
        return "ended"
    return "silent" if now.silent is not None else "running"


def _silent(now: Now) -> str:
    return duration(now.silent).removesuffix(" 0 s") if now.silent is not None else ""


def _verdict(health: Health, alarms: Sequence[Alarm], now: Now) -> tuple[str, str]:
    """The class and the sentence that a reader sees first."""
    if not health.sources and now.live:
        return "minor", "Waiting for the log"
    if not health.records and not alarms:
        return "minor", "No metric in the log yet" if now.live else "No metric in the log"
    if not alarms:
        return "good", "No alarms so far" if now.live and not now.ended else "No alarms"
    number = counts(alarms)
    warnings = f"{number['warning']} warning{'s' * (number['warning'] > 1)}"
    said = ", ".join([*([f"{number['critical']} critical"] * bool(number["critical"])), *([warnings] * bool(number["warning"]))])
    return CLASSES[alarms[0].level], f"{len(alarms)} alarm{'s' * (len(alarms) > 1)}: {said}"


def _tiles(health: Health, now: Now) -> Iterator[tuple[str, str, str]]:
    """The figures of a run: name, value, and a remark."""
    ahead = max(now.progress.values(), key=lambda each: each.step or 0, default=None)
    loss = _main(health, "loss")
    step = ahead.step if ahead is not None and ahead.step is not None else _last_step(loss)
    if step is not None:
        total = ahead.total if ahead is not None else None
        yield "Step", f"{step:,}", f"of {total:,} ({100 * step // total} %)" if total else ""
    if ahead is not None and ahead.epoch is not None:
        yield "Epoch", f"{ahead.epoch:g}", ""
    if ahead is not None and ahead.left is not None and now.live and not now.ended:
        yield "Time left", duration(ahead.left), "at the pace of the last minutes"
    if loss is not None:
        yield "Loss", latest(loss), f"lowest {figure(loss.curve.low)}{_of_rank(loss)}"
    validated = _main(health, "loss", "val")
    if validated is not None:
        yield "Validation loss", latest(validated), f"lowest {figure(validated.curve.low)}"
    for key, words, unit in (
        ("tokens_per_s", "Tokens per second", ""),
        ("samples_per_s", "Samples per second", ""),
        ("iterations_per_s", "Steps per second", ""),
        ("step_time_s", "Time per step", " s"),
    ):
        speed = _main(health, key)
        if speed is not None:
            yield words, f"{_grouped(speed.trace.latest)}{unit}", f"median {_grouped(speed.curve.median)}{unit}"
            break
    memory = _main(health, "memory_bytes")
    if memory is not None:
        yield "Memory", latest(memory), f"highest {figure(memory.curve.high, 'B')}"


def _main(health: Health, key: str, split: str = "train") -> Series | None:
    """The longest series of a quantity, in training or in validation; one that is not a number now comes first."""
    found = [
        series
        for series in health.series
        if series.key.named.key == key and series.trace.count and (series.key.template.split == "val") == (split == "val")
    ]
    return max(found, key=lambda series: (not math.isfinite(series.trace.latest), series.trace.count), default=None)


def _grouped(value: float) -> str:
    """A value with its thousands apart.

    >>> _grouped(38405.2), _grouped(0.21337)
    ('38,405', '0.21337')
    """
    return f"{value:,.5g}" if math.isfinite(value) else f"{value:g}"


def _of_rank(series: Series) -> str:
    return f" (rank {series.key.rank})" if series.key.rank is not None else ""


def _last_step(series: Series | None) -> int | None:
    return series.trace.last.step if series is not None and series.trace.last is not None else None


def _sentences(health: Health, made: Picture | None) -> Iterator[str]:
    """The course of the run, as text."""
    loss = _main(health, "loss")
    if loss is not None and math.isfinite(loss.curve.first):
        first, last = loss.curve.first, loss.trace.latest
        if not math.isfinite(last):
            yield f"The loss began at {figure(first)} and is {last:g} now{_of_rank(loss)}."
        elif last < first:
            yield f"The loss fell from {figure(first)} to {figure(last)}."
        else:
            yield f"The loss did not fall: it began at {figure(first)} and is {figure(last)} now."
    if made is not None and made.panels:
        places = [at for panel in made.panels for course in panel.courses for at, _ in course.points]
        if places:
            yield f"The curves cover {made.unit} {charts.short(min(places))} to {charts.short(max(places))}."
    count = len(health.sources)
    records = sum(source.records for source in health.sources.values())
    lines = sum(source.lines for source in health.sources.values())
    if count:
        yield f"{records:,} records were read in {lines:,} lines of {count:,} log{'s' * (count > 1)}."


def _charts(made: Picture, numbers: Mapping[int, int]) -> list[charts.LineChart]:
    """The panels on one axis. An alarm of a series that is drawn is marked in its panel, any other one in all of them."""
    lines = [[charts.Line(course.label, course.points, course.lost) for course in panel.courses] for panel in made.panels]
    marked = [charts.Line("", [(mark.x, 0.0) for mark in made.marks if mark.x is not None])]
    x = charts.x_scale([*(line for panel in lines for line in panel), *marked])
    drawn = {course.series for panel in made.panels for course in panel.courses}
    found = []
    for number, (panel, each) in enumerate(zip(made.panels, lines, strict=True)):
        own = {course.series for course in panel.courses}
        markers = {
            numbers[id(mark.alarm)]: charts.Marker(
                numbers[id(mark.alarm)],
                mark.x,
                CLASSES[mark.level],
                f"Alarm {numbers[id(mark.alarm)]}: {mark.kind}, {mark.text}",
                f"alarm-{numbers[id(mark.alarm)]}",
            )
            for mark in reversed(made.marks)
            if mark.x is not None and _concerns(mark.alarm, own, drawn)
        }
        found.append(
            charts.line_chart(
                f"panel-{number}",
                panel.title[:1].upper() + panel.title[1:],
                each,
                x=x,
                unit=made.unit,
                note=_note(panel),
                logarithmic=panel.logarithmic,
                from_zero=panel.from_zero,
                markers=list(markers.values()),
                most=max(200, MOST_POINTS // max(len(each), 1)) if len(each) > 5 else 1100,
            )
        )
    return found


def _concerns(alarm: Alarm, own: set[tuple[str, str]], drawn: set[tuple[str, str]]) -> bool:
    series = alarm.source, alarm.series
    return series in own or series not in drawn


def _note(panel: Panel) -> str:
    words = ["logarithmic"] if panel.logarithmic else []
    if panel.left:
        words.append(f"{len(panel.courses)} of {len(panel.courses) + panel.left} series")
    return ", ".join(words)


def _row(name: str, series: Series) -> dict[str, str]:
    curve, unit = series.curve, series.key.named.unit
    return {
        "name": name,
        "count": f"{curve.count:,}" + (f" + {curve.nonfinite:,} nan/inf" if curve.nonfinite else ""),
        "first": figure(curve.first, unit),
        "last": latest(series),
        "low": figure(curve.low, unit),
        "median": figure(curve.median, unit),
        "high": figure(curve.high, unit),
        "spark": charts.sparkline(curve.values),
    }


def _source(name: str, lines: int, records: int, now: Now) -> dict[str, str]:
    progress = now.progress.get(name)
    step = ""
    if progress is not None and progress.step is not None:
        step = f"{progress.step:,}" + (f" of {progress.total:,}" if progress.total is not None else "")
    return {"name": name, "lines": f"{lines:,}", "records": f"{records:,}", "step": step}


def _percent_slower(row: Process) -> str:
    """The time for a step beside the middle rank's.

    >>> _percent_slower(Process("rank 0", 1, 0, 1.0, 1.25, 0, False))
    '+25 %'
    """
    return f"{100 * (row.slower - 1):+.0f} %" if row.slower is not None else ""
