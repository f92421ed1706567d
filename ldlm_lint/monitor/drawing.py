"""A `Picture` drawn by matplotlib into a file. Colours are those of Okabe and Ito; each level also has a line style."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ldlm_lint.monitor.alarms import Level
from ldlm_lint.monitor.picture import Course, Mark, Panel, Picture
from ldlm_lint.report.cells import clean

SUFFIXES = (".png", ".svg", ".pdf")
SIZE, DPI = (10.0, 7.0), 100
"""Inches and dots per inch: 1000 x 700."""
_COURSES = ("#0072B2", "#009E73", "#CC79A7", "#56B4E9", "#000000")
_DASHES = ("-", "--")
LEVELS = {Level.CRITICAL: ("#B2182B", "-"), Level.WARNING: ("#E69F00", "--")}
"""The colour and line style of each level: dark and solid, light and dashed."""
_INK = {Level.CRITICAL: "#B2182B", Level.WARNING: "#8A5F00"}
"""The same for text, which has to be darker on white."""
_LOST = "#B2182B"
_FEW = 40
"""Courses with fewer points show each of them."""
_CLOSE = 0.04
"""Marks closer than this part of the axis share one label."""
_LONGEST, _NAME = 118, 28
"""The most characters of a line of the list, and of a name in a legend."""


def draw(picture: Picture, path: Path) -> None:
    """Write the picture; its format is that of the file's suffix, one of `SUFFIXES`. Raises OSError."""
    # Not pyplot: a picture for a file needs no window and no global state.
    from matplotlib.figure import Figure

    figure = Figure(figsize=SIZE, layout="constrained")
    notes = [*map(_line, picture.marks), *((text, "#333333") for text in picture.notes)]
    panels = len(picture.panels)
    heights = [2.0 if number == 0 and panels > 1 else 1.3 for number in range(panels)]
    listed = 0.165 * len(notes) * sum(heights) / 5
    grid = figure.add_gridspec(panels + 1, 1, height_ratios=[*heights, max(listed, 0.001)])
    first = None
    for number, panel in enumerate(picture.panels):
        axes = figure.add_subplot(grid[number], sharex=first)
        first = first or axes
        _panel(axes, panel, picture.marks)
        if number < panels - 1:
            axes.tick_params(labelbottom=False)
        else:
            axes.set_xlabel(picture.unit)
            axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
    assert first is not None
    first.set_title(clean(picture.title), fontsize=11, loc="left", pad=18 if picture.marks else 8, parse_math=False)
    _numbers(first, picture.marks)
    _listed(figure.add_subplot(grid[panels]), notes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a letter that the font lacks is drawn as a box
        figure.savefig(path, dpi=DPI)


def _panel(axes: Any, panel: Panel, marks: Sequence[Mark]) -> None:
    for number, course in enumerate(panel.courses):
        _course(axes, course, number)
    _lost(axes, panel.courses)
    if panel.logarithmic:
        axes.set_yscale("log")
    elif panel.from_zero:
        axes.set_ylim(bottom=0)
    for mark in marks:
        if mark.x is not None:
            colour, style = LEVELS[mark.level]
            axes.axvline(mark.x, color=colour, linestyle=style, linewidth=1.2, alpha=0.8, zorder=1)
    axes.set_ylabel(panel.title + (" (log)" if panel.logarithmic else ""), fontsize=9)
    axes.grid(alpha=0.25)
    axes.tick_params(labelsize=8)
    if len(panel.courses) > 1 or panel.left or any(course.lost for course in panel.courses):
        more = f"{len(panel.courses)} of {len(panel.courses) + panel.left}" if panel.left else None
        beside = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.02), "borderaxespad": 0.3, "frameon": False}
        axes.legend(fontsize=7, title=more, title_fontsize=7, labelspacing=0.25, **beside)


def _course(axes: Any, course: Course, number: int) -> None:
    colour, dash = _COURSES[number % len(_COURSES)], _DASHES[number // len(_COURSES) % len(_DASHES)]
    few = len(course.points) < _FEW
    axes.plot(
        [x for x, _ in course.points],
        [y for _, y in course.points],
        color=colour,
        linestyle=dash,
        linewidth=1.6 if few else 1.0,
        marker=("D" if course.split == "val" else "o") if few else None,
        markersize=4,
        label=_label(course.label),
        zorder=3 if few else 2,
    )


def _lost(axes: Any, courses: Sequence[Course]) -> None:
    """Where values are not finite: at the top of the panel, as there is no height for them."""
    of = [course.label for course in courses if course.lost]
    # The first one represents all of them in the legend.
    label = _label("NaN or infinite", of[0] if len(of) == 1 < len(courses) else "") if of else None
    for start, end in (span for course in courses for span in course.lost):
        axes.plot(
            [start, end],
            [0.965, 0.965],
            transform=axes.get_xaxis_transform(),
            color=_LOST,
            marker="x",
            markersize=7,
            markeredgewidth=2,
            linewidth=4,
            solid_capstyle="butt",
            label=label,
            zorder=4,
        )
        label = None


def _numbers(axes: Any, marks: Sequence[Mark]) -> None:
    """The numbers of the marks above the first panel; neighbours share one label."""
    low, high = axes.get_xlim()
    groups: list[list[Mark]] = []
    for mark in marks:
        if mark.x is None:
            continue
        last = groups[-1][0].x if groups else None
        if last is not None and mark.x - last < _CLOSE * (high - low):
            groups[-1].append(mark)
        else:
            groups.append([mark])
    for group in groups:
        text = str(group[0].number) + (f"-{group[-1].number}" if len(group) > 1 else "")
        axes.annotate(
            text,
            (group[0].x, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(0, 3),
            textcoords="offset points",
            ha="center",
            color=_INK[max(mark.level for mark in group)],
            fontsize=9,
            fontweight="bold",
            annotation_clip=False,
        )


def _line(mark: Mark) -> tuple[str, str]:
    where = "" if mark.x is not None else " (not on this axis)"
    return f"{mark.number:2d}  {mark.level.word} {mark.kind}{where}, {mark.text}", _INK[mark.level]


def _listed(axes: Any, lines: Sequence[tuple[str, str]]) -> None:
    axes.axis("off")
    for number, (text, colour) in enumerate(lines):
        text = clean(text)
        text = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
        y = 1 - (number + 0.5) / len(lines)
        axes.text(0, y, text, color=colour, fontsize=8.5, va="center", parse_math=False, transform=axes.transAxes)


def _label(text: str, of: str = "") -> str:
    """A name from a log escaped for a legend: ``$`` begins a formula there, and a leading ``_`` hides the entry."""
    text = clean(f"{_short(of)}: {text}" if of else _short(text)).replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text


def _short(text: str) -> str:
    return text if len(text) <= _NAME else f"{text[: _NAME // 2]}…{text[-_NAME // 2 + 1 :]}"
