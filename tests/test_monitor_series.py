"""Series in constant memory, and what keeps two of them apart."""

from __future__ import annotations

import statistics

import pytest
from training_logs import records, template

from ldlm_lint.monitor.health import Health
from ldlm_lint.monitor.records import Record
from ldlm_lint.monitor.series import Curve, SeriesKey


def curve(values: list[float], capacity: int = 64, block: int = 10) -> Curve:
    made = Curve(capacity)
    rows = list(records({"step": step, "loss": value} for step, value in enumerate(values)))
    for start in range(0, len(values), block):
        made.extend(values[start : start + block], rows[start : start + block])
    return made


def test_a_short_curve_is_exact() -> None:
    made = curve([5.0, 4.0, 3.5, 9.0])
    assert (made.first, made.last, made.low, made.high, made.count) == (5.0, 9.0, 3.5, 9.0, 4)
    assert made.median == statistics.median([5.0, 4.0, 3.5, 9.0])


@pytest.mark.parametrize("block", [1, 7, 64, 1000])
def test_a_long_curve_keeps_evenly_spaced_points(block: int) -> None:
    values = [float(step) for step in range(5000)]
    made = curve(values, block=block)
    assert len(made.values) <= 64 and made.count == 5000
    assert made.steps == list(range(0, 5000, made.stride)) == [int(one) for one in made.values]
    assert (made.first, made.last, made.low, made.high) == (0.0, 4999.0, 0.0, 4999.0)
    assert abs(made.median - 2500) <= 2 * made.stride


def test_a_sparkline_goes_where_the_curve_goes() -> None:
    assert curve([8.0, 7, 6, 5, 4, 3, 2, 1]).sparkline(8) == "█▇▆▅▄▃▂▁"
    assert curve([2.0] * 30).sparkline(5) == "▄▄▄▄▄"
    assert Curve().sparkline() == ""
    assert len(curve([float(one % 17) for one in range(5000)]).sparkline(20)) == 20


def test_a_label_says_what_makes_the_series_one() -> None:
    key = SeriesKey("log", 3, "Actor pid=7", template(["loss"]), 0)
    assert key.label == key.short == "loss [train] rank 3 Actor pid=7"


def test_ranks_processes_templates_and_files_are_series_of_their_own() -> None:
    health = Health()
    one, other = template(["loss"]), template(["loss"], name="test/other")
    for source, rank, actor, shape in (
        ("a", 0, "", one), ("a", 1, "", one), ("a", None, "x", one), ("a", 0, "", other), ("b", 0, "", one),
    ):  # fmt: skip
        health.take(source, None, (Record(1, rank, actor, shape, 1, None, (2.0,)),))
    health.close()
    assert [one.curve.count for one in health.series] == [1] * 5


def test_templates_of_another_reader_go_on_with_the_series() -> None:
    """A log that was rotated is read by another reader, whose templates are other objects."""
    health = Health()
    for step in range(10):
        health.take("a", None, (Record(step, None, "", template(["loss"]), step, None, (2.0,)),))
    health.close()
    assert [one.curve.count for one in health.series] == [10]


def test_a_bar_that_is_drawn_again_is_one_point() -> None:
    health = Health()
    shape = template(["loss"])
    for step in (1, 1, 1, 2, 2):
        health.take("a", None, (Record(1, None, "", shape, step, None, (2.0,)),))
    health.close()
    assert [one.curve.count for one in health.series] == [2]


def test_since_and_rank_leave_records_out() -> None:
    health = Health(since=5, rank=0)
    shape = template(["loss"])
    for step in range(10):
        for rank in (0, 1):
            health.take("a", None, (Record(step, rank, "", shape, step, None, (2.0,)),))
    health.close()
    assert [(one.key.rank, one.curve.count) for one in health.series] == [(0, 5)]
