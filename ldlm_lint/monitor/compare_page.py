"""Two runs side by side as an HTML page: whether they differ, where their curves diverge, and the figures."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

from ldlm_lint.evidence.model import Verdict
from ldlm_lint.monitor.aligned import Aligned, Place, Points
from ldlm_lint.monitor.compare import Compared, Comparison
from ldlm_lint.monitor.compare_report import pair
from ldlm_lint.monitor.picture import LOGARITHMIC
from ldlm_lint.monitor.remarks import Remark, quantity
from ldlm_lint.monitor.report import listed
from ldlm_lint.monitor.run_page import SCRIPTS, STYLES
from ldlm_lint.report.html import charts
from ldlm_lint.report.html.page import render

_BADGES = {Verdict.VERIFIED: ("costly", "differ"), Verdict.REFUTED: ("good", "no difference"), Verdict.INCONCLUSIVE: ("", "not known")}


def page(a: str, b: str, compared: Compared) -> str:
    """The page; ``a`` and ``b`` name the runs."""
    return render(
        "monitor_compare.html",
        styles=STYLES,
        scripts=SCRIPTS,
        a=a,
        b=b,
        differ=compared.differ,
        uncompared=listed(compared.uncompared),
        remarks=sorted(_remarks(compared), key=lambda remark: not remark.differs),
        next=_next(compared),
        rows=[_row(each) for each in compared.quantities],
        speed=any(each.key != "loss" and each.ratio for each in compared.quantities),
        charts=[_chart(each) for each in compared.quantities if each.aligned is not None],
    )


def _remarks(compared: Compared) -> Iterator[Remark]:
    """The differences of the runs, first per quantity, and further remarks."""
    for each in compared.quantities:
        said = [remark for remark in each.remarks if remark.differs]
        if said:
            yield from (Remark(remark.kind, f"{_title(each)}: {remark.text}", True) for remark in said)
        elif each.verdict is Verdict.VERIFIED:
            yield Remark("whole", f"{_title(each)}: {each.reason}", True)
    yield from compared.remarks


def _next(compared: Compared) -> str:
    """What to look at first."""
    if not compared.differ:
        return "Nothing: what one run does differently from the other is within what a run differs from itself."
    for each in compared.quantities:
        if each.apart is not None and each.aligned is not None:
            return (
                f"Look at {each.aligned.a.name(each.apart[0])}, where the {quantity(each.key, each.split)} of the runs parts "
                "(the ground is coloured there), and at what both logs say around it. Then compare the launch commands "
                "and configurations of the runs."
            )
    return "Compare the launch commands and configurations of the runs: the curves below show what differs."


def _row(compared: Comparison) -> dict[str, Any]:
    level, word = _BADGES[compared.verdict]
    return {
        "name": _title(compared),
        "steps": f"{compared.steps:,}",
        "median": pair((compared.a, compared.b)),
        "last": pair(compared.last, "nan"),
        "worst": pair(compared.worst),
        "level": level,
        "word": word,
        "reason": compared.reason,
    }


def _title(compared: Comparison) -> str:
    words = quantity(compared.key, compared.split)
    return words[:1].upper() + words[1:]


def _chart(compared: Comparison) -> charts.LineChart:
    aligned = compared.aligned
    assert aligned is not None
    axis = _Axis(aligned)
    lines = [axis.line("A", aligned.a), axis.line("B", aligned.b)]
    values = [value for line in lines for _, value in line.points if math.isfinite(value)]
    low, high = min(values, default=0.0), max(values, default=0.0)
    logarithmic = low > 0 and high / low > LOGARITHMIC
    return charts.line_chart(
        f"{compared.key}-{compared.split}",
        _title(compared),
        lines,
        unit=axis.unit,
        note=_BADGES[compared.verdict][1] + (", logarithmic" if logarithmic else ""),
        logarithmic=logarithmic,
        from_zero=compared.key != "loss" and not logarithmic,
        bands=[(axis.at(compared.apart[0]), axis.at(compared.apart[1]))] if compared.apart else [],
    )


class _Axis:
    """One axis for two runs: their steps; if these restart, the turns in sequence."""

    def __init__(self, aligned: Aligned) -> None:
        both = aligned.a, aligned.b
        turns = 1 + max(points.places[-1][0] for points in both)
        longest = [0] * turns
        for points in both:
            for turn, step in points.places:
                longest[turn] = max(longest[turn], step + 1)
        self._offsets = [0, *accumulate(longest)]
        numbered = all(points.numbered for points in both)
        self.unit = "step" if numbered and turns == 1 else "step (summed over epochs)" if numbered else "record"

    def at(self, place: Place) -> float:
        """Where a place is. A run of fewer turns than the other has none beyond its last one."""
        return float(self._offsets[place[0]] + place[1])

    def line(self, label: str, points: Points) -> charts.Line:
        """A run as a line, with the stretches in which its values are not finite."""
        return charts.Line(
            label, [(self.at(place), points.values[place]) for place in points.places], list(self._lost(points))
        )

    def _lost(self, points: Points) -> Iterator[tuple[float, float]]:
        span: list[Place] = []
        for place in points.broken:
            if span and _neighbours(points.places, span[-1], place):
                span.append(place)
                continue
            if span:
                yield self.at(span[0]), self.at(span[-1])
            span = [place]
        if span:
            yield self.at(span[0]), self.at(span[-1])


def _neighbours(places: Sequence[Place], before: Place, after: Place) -> bool:
    at = bisect_right(places, before)
    return at < len(places) and places[at] == after
