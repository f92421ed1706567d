"""Charts as data: round ticks inside of the plot, paths that break at gaps, thinning that keeps spikes, markers in groups."""

from __future__ import annotations

import doctest
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldlm_lint.monitor import run_page
from ldlm_lint.report.html import charts
from ldlm_lint.report.html.charts import Line, Marker, Scale, line_chart, path, scale, thinned

FINITE = st.floats(-1e12, 1e12, allow_nan=False)


@pytest.mark.parametrize("module", [charts, run_page])
def test_the_examples_of_the_docstrings_hold(module: object) -> None:
    done = doctest.testmod(module)  # type: ignore[arg-type]
    assert done.attempted and not done.failed


@given(st.lists(FINITE, min_size=1), st.booleans())
def test_a_scale_holds_its_values_and_its_ticks_are_inside(values: list[float], from_zero: bool) -> None:
    made = scale(values, from_zero=from_zero)
    assert all(-1e-9 <= made.share(value) <= 1 + 1e-9 for value in values)
    ticks = made.ticks(6)
    assert 1 <= len(ticks) <= 7 and all(-1e-6 <= tick.at <= 1 + 1e-6 for tick in ticks)
    assert [tick.at for tick in ticks] == sorted(tick.at for tick in ticks)


@given(st.lists(st.floats(1e-9, 1e12), min_size=1))
def test_a_logarithmic_scale_holds_its_values_and_has_ticks(values: list[float]) -> None:
    made = scale(values, logarithmic=True)
    assert all(-1e-9 <= made.share(value) <= 1 + 1e-9 for value in values)
    ticks = made.ticks(6)
    assert ticks and all(-1e-6 <= tick.at <= 1 + 1e-6 for tick in ticks)


@given(st.lists(st.one_of(FINITE, st.just(math.nan)), max_size=400), st.integers(4, 60))
def test_thinned_points_keep_the_extremes_and_their_order(values: list[float], most: int) -> None:
    points = [(float(at), value) for at, value in enumerate(values)]
    kept = thinned(points, most)
    finite = [value for value in values if math.isfinite(value)]
    left = [value for _, value in kept if math.isfinite(value)]
    assert len(kept) <= max(1.5 * most + 3, most) and [at for at, _ in kept] == sorted(at for at, _ in kept)
    assert not finite or (min(left), max(left)) == (min(finite), max(finite))


def test_a_path_is_broken_where_values_are_not_finite() -> None:
    x, y = Scale(0, 4), Scale(0, 1)
    assert path([(0, 0), (1, 1), (2, math.nan), (3, 1), (4, 0)], x, y) == "M0 1000L250 0M750 0L1000 1000"
    assert path([(0, math.inf)], x, y) == ""


def test_a_chart_says_what_is_lost_and_groups_its_markers() -> None:
    points = [(float(at), math.nan if at > 90 else 100.0 - at) for at in range(101)]
    markers = [Marker(number, at, level, f"alarm {number}", f"alarm-{number}") for number, at, level in ((1, 10.0, "costly"), (2, 11.0, "grave"), (3, 60.0, "costly"))]
    made = line_chart("loss", "Loss", [Line("rank 0", points, [(91.0, 100.0)]), Line("rank 1", [(0.0, 5.0), (100.0, 6.0)])], markers=markers)
    (lost, whole) = made.lines
    assert (lost.last, whole.last, lost.lost, lost.spans) == ("not a number", "6", (("91%", "9%"),), "91:100")
    assert [(marker.at, marker.text, marker.level, marker.target) for marker in made.markers] == [("10%", "1-2", "grave", "alarm-1"), ("60%", "3", "costly", "alarm-3")]
    assert made.head == ("step", "rank 0", "rank 1") and made.rows[0] == ("0", "100", "5") and len(made.rows) == charts.ROWS
    assert len(whole.dots) == 2 and not lost.dots


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=30), st.booleans())
def test_no_number_that_a_log_may_print_breaks_a_chart(values: list[float], logarithmic: bool) -> None:
    values = [abs(value) or 1.0 for value in values] if logarithmic else values
    made = line_chart("k", "K", [Line("a", [(float(at), value) for at, value in enumerate(values)])], logarithmic=logarithmic)
    drawn = made.lines[0].path
    assert "nan" not in drawn and "inf" not in drawn and made.y_ticks
