"""Remarks on two runs besides the ratios of their quantities: records that only one has, NaN, columns, alarms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ldlm_lint.monitor.alarms import Alarm, Level
from ldlm_lint.monitor.aligned import Aligned, Place, Points
from ldlm_lint.monitor.health import Health
from ldlm_lint.monitor.report import distinct

_MOST_NAMES = 8
_SLACK = 0.01
"""Share of a run that can be between the ends of two runs that are called equally long."""
_LOST = 0.01
_FEWEST_LOST = 3
_SIGNIFICANT = 3.0
_TOLD_BY_RECORDS = ("nan-loss",)
_WORDS = {
    "step_time_s": "step time",
    "tokens_per_s": "tokens per second",
    "samples_per_s": "samples per second",
    "iterations_per_s": "iterations per second",
}


@dataclass(frozen=True, slots=True)
class Remark:
    """A sentence about two runs; ``differs`` says that it counts as a difference. ``kind`` names it for programs."""

    kind: str
    text: str
    differs: bool


def quantity(key: str, split: str) -> str:
    """A quantity as text: ``validation loss``."""
    return ("validation " if split == "val" else "") + _WORDS.get(key, key)


def times(ratio: float) -> str:
    """A ratio as text: ``2.0 times``."""
    return f"{ratio:.1f} times" if ratio >= 1.95 else f"{ratio:.2f} times"


def measure(value: float, key: str) -> str:
    """A value as text, with its unit."""
    return f"{value:.3g} s" if key == "step_time_s" else f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def broken(aligned: Aligned) -> Iterator[Remark]:
    """The number of non-finite values of each run, and whether the runs differ in it."""
    a, b = aligned.a, aligned.b
    if not a.lost and not b.lost:
        return
    if a.lost == b.lost and [(p, str(a.values[p])) for p in a.broken] == [(p, str(b.values[p])) for p in b.broken]:
        yield Remark("nonfinite", f"both have {_broken(a)}", differs=False)
        return
    differs = not (a.lost and b.lost) or (
        max(a.lost, b.lost) > 2 * min(a.lost, b.lost) and abs(a.lost - b.lost) > _SIGNIFICANT * (a.lost + b.lost) ** 0.5
    )
    (most, what), (least, other) = sorted((("A", a), ("B", b)), key=lambda one: -one[1].lost)
    rest = f"{least} has {_broken(other)}" if other.lost else f"{least} has none"
    yield Remark("nonfinite", f"{most} has {_broken(what)}; {rest}", differs)


def _broken(points: Points) -> str:
    """The non-finite values in a run: ``NaN from step 400 (200 of 600 records)``."""
    share = f"({points.lost:,} of {points.count:,} records)"
    if not points.broken:
        return f"NaN or infinity {share}"
    values = {str(points.values[one]) for one in points.broken}
    what = "NaN" if values == {"nan"} else "infinity" if "nan" not in values else "NaN and infinity"
    first = points.broken[0]
    on = len(points.broken) > 1 and points.places[-len(points.broken) :] == points.broken
    return f"{what} {'from' if on else 'first at'} {points.name(first)} {share}"


def ends(aligned: Aligned) -> Iterator[Remark]:
    """Whether one run ended before the other, or began after it."""
    a, b = aligned.a, aligned.b
    if aligned.apart:
        text = f"A has {a.span(a.places[0], a.places[-1])}, B {b.span(b.places[0], b.places[-1])}: no step in common"
        yield Remark("begins", text, differs=False)
        return
    span = max(a.places[-1][1], b.places[-1][1]) - min(a.places[0][1], b.places[0][1])
    slack = max(a.longest, b.longest) + _SLACK * span
    for kind, index, verb in (("begins", 0, "begins"), ("ends", -1, "ends")):
        x, y = a.places[index], b.places[index]
        if x[0] == y[0] and abs(x[1] - y[1]) <= slack:
            continue
        # Unusual ends come first: an early end, a late start.
        (odd, at, points), (other, there, rest) = sorted(
            (("A", x, a), ("B", y, b)), key=lambda one: one[1], reverse=kind == "begins"
        )
        yield Remark(kind, f"{odd} {verb} at {points.name(at)}, {other} at {rest.name(there)}", differs=kind == "ends")


def missing(aligned: Aligned) -> Iterator[Remark]:
    """Steps between the common first and last one that only one of the runs has."""
    a, b = aligned.a, aligned.b
    if not (a.whole and b.whole) or not (aligned.only_a or aligned.only_b):
        return
    if a.interval != b.interval or not (a.regular and b.regular):
        how = [f"every {points.interval:,}" if points.regular else "at irregular" for points in (a, b)]
        text = f"A has a record {how[0]} steps, B {how[1]}: {len(aligned.common):,} steps in common"
        yield Remark("interval", text, differs=False)
        return
    if not aligned.common:
        yield Remark("interval", "the steps of A and B are shifted against each other: none in common", differs=False)
        return
    for without, other, points, places in (("B", "A", a, aligned.only_a), ("A", "B", b, aligned.only_b)):
        if not places:
            continue
        every = len(aligned.common) + len(places)
        text = f"{without} has no record at {len(places):,} of the {every:,} steps that {other} has: {_spans(points, places)}"
        yield Remark("missing", text, differs=len(places) >= max(_FEWEST_LOST, _LOST * every))


def _spans(points: Points, places: Sequence[Place]) -> str:
    """Steps as ranges: ``step 200 to 249, step 300``."""
    spans: list[list[Place]] = []
    for one in places:
        if spans and one[0] == spans[-1][1][0] and one[1] - spans[-1][1][1] <= points.interval:
            spans[-1][1] = one
        else:
            spans.append([one, one])
    said = [points.name(x) if x == y else points.span(x, y) for x, y in spans[:3]]
    return ", ".join(said) + (f" and {len(spans) - 3} more" if len(spans) > 3 else "")


def columns(first: Health, second: Health) -> Iterator[Remark]:
    """The columns that only one of the runs prints."""
    ours, theirs = _columns(first), _columns(second)
    for who, more in (("A", ours - theirs), ("B", theirs - ours)):
        if more:
            named = sorted(more)[:_MOST_NAMES]
            rest = f" and {len(more) - len(named)} more" if len(more) > len(named) else ""
            yield Remark("columns", f"only {who} has: {', '.join(named)}{rest}", differs=False)


def _columns(health: Health) -> set[str]:
    return {
        f"{one.key.named.raw} [{one.key.template.split}]" if one.key.template.split else one.key.named.raw
        for one in health.series
    }


def alarms(first: Health, second: Health) -> Iterator[Remark]:
    """The kinds of alarms that only one of the runs has; an alarm that ended or ruined only one of them is a
    difference."""
    ours, others = _kinds(first), _kinds(second)
    for who, other, mine, theirs in (("A", "B", ours, others), ("B", "A", others, ours)):
        for kind, alarm in mine.items():
            if kind in theirs or kind in _TOLD_BY_RECORDS:
                continue
            at = f"step {alarm.step}" if alarm.step is not None else f"line {alarm.line}"
            text = f"{who} has the alarm {kind} ({at}: {alarm.message}); {other} has not"
            yield Remark("alarm", text, differs=alarm.level is Level.CRITICAL)


def _kinds(health: Health) -> dict[str, Alarm]:
    return {one.kind: one for one in reversed(distinct(health.book.at_least(Level.WARNING)))}
