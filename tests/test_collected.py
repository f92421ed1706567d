"""One test for many values tells of each that fails, and does not let them meet."""

from __future__ import annotations

from pathlib import Path

import collected
import pytest
from collected import for_every


@for_every("name, number", [("one", 1), pytest.param("two", 3, id="second"), ("three", 3)])
def spelled(name: str, number: int) -> None:
    assert {"one": 1, "two": 2, "three": 3}[name] == number


@for_every("number", range(3), ids=lambda number: f"the {number}")
def even(number: int) -> None:
    if number % 2:
        pytest.fail("odd")


@for_every("number", [])
def nothing(number: int) -> None:
    pass


@for_every("first", "ab")
@for_every("second", "cd")
def never_alike(first: str, second: str) -> None:
    assert first + second == "ac", "too bad"


@for_every("number", [1, 2])
def alone(number: int, tmp_path: Path) -> None:
    (tmp_path / "file").touch(exist_ok=False)


def complaints(test: object, **fixtures: object) -> list[str]:
    with pytest.raises(pytest.fail.Exception) as failed:
        test(**fixtures)  # type: ignore[operator]
    return str(failed.value).splitlines()


def test_each_value_that_fails_is_named_with_its_line_and_reason() -> None:
    (first, *_) = complaints(spelled)
    assert first.startswith("second: test_collected.py:14: AssertionError")
    assert complaints(even) == ["the 1: test_collected.py:20: Failed: odd"]


def test_of_two_tables_every_pair_is_tried() -> None:
    assert [line.partition(": test_")[0] for line in complaints(never_alike) if ": test_" in line] == ["a-d", "b-c", "b-d"]


def test_a_test_of_nothing_fails() -> None:
    assert complaints(nothing) == ["nothing to test"]


def test_values_share_no_folder(tmp_path: Path) -> None:
    alone(tmp_path=tmp_path)


def test_what_is_asked_for_by_name_is_tried_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collected, "ONLY", ("one",))
    spelled()
    monkeypatch.setattr(collected, "ONLY", ("second", "third"))
    assert len([line for line in complaints(spelled) if line.startswith("second: ")]) == 1


@for_every("number", [1, 2, 3])
def partly(number: int, worst: int) -> None:
    if number == 1:
        pytest.skip("not here")
    assert number < worst


def test_a_value_that_is_skipped_hides_none_that_fails() -> None:
    assert [line.partition(":")[0] for line in complaints(partly, worst=3) if ": test_" in line] == ["3"]
    with pytest.raises(pytest.skip.Exception, match="1: not here"):
        partly(worst=4)


def test_a_value_with_a_mark_is_refused() -> None:
    with pytest.raises(AssertionError, match="late: a mark"):
        for_every("number", [pytest.param(1, id="late", marks=pytest.mark.slow)])
