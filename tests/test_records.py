"""Records behave as the standard library's frozen dataclasses with slots do."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from dataclasses import field, fields, replace
from functools import cached_property

import pytest

from ldlm_lint import records


def _classes(dataclass: object) -> dict[str, type]:
    @dataclass(frozen=True, slots=True)
    class Place:
        """A place."""

        line: int
        name: str = ""
        seen: list[int] = field(default_factory=list)

        @property
        def shown(self) -> str:
            return f"{self.name}:{self.line}"

    @dataclass(frozen=True, slots=True)
    class One:
        """One value."""

        value: object

    @dataclass(frozen=True, slots=True)
    class Nothing:
        """No value."""

    @dataclass(frozen=True, slots=True, order=True)
    class Ordered:
        """Values in an order."""

        value: int

    @dataclass(frozen=True, slots=True)
    class Hidden:
        """A field that does not count."""

        value: int
        note: str = field(default="", compare=False, repr=False)

    @dataclass(frozen=True)
    class Open:
        """A record that may remember what it has worked out."""

        value: int
        seen: tuple[int, ...] = ()
        made: list[int] = field(default_factory=list)

        @cached_property
        def double(self) -> int:
            return 2 * self.value

    return {kind.__name__: kind for kind in (Place, One, Nothing, Ordered, Hidden, Open)}


OURS, THEIRS = _classes(records.dataclass), _classes(dataclasses.dataclass)
# Pickles name a class by its place in the module.
Place = OURS["Place"]
Place.__qualname__ = "Place"
MADE = (
    ("Place", (1,), {}),
    ("Place", (1, "a"), {}),
    ("Place", (), {"line": 2, "seen": [3]}),
    ("One", ("x",), {}),
    ("Nothing", (), {}),
    ("Ordered", (1,), {}),
    ("Hidden", (1, "n"), {}),
    ("Open", (1, (2,)), {}),
)


@pytest.mark.parametrize(("name", "values", "named"), MADE)
def test_a_record_is_like_a_dataclass(name: str, values: tuple[object, ...], named: dict[str, object]) -> None:
    ours, theirs = (kinds[name](*values, **named) for kinds in (OURS, THEIRS))
    assert repr(ours).rpartition(".")[2] == repr(theirs).rpartition(".")[2]
    assert [getattr(ours, one.name) for one in fields(ours)] == [getattr(theirs, one.name) for one in fields(theirs)]
    assert ours == OURS[name](*values, **named) and ours != theirs and hasattr(ours, "__dict__") == hasattr(theirs, "__dict__")
    assert type(ours).__match_args__ == type(theirs).__match_args__
    assert type(ours).__dataclass_params__.frozen and copy.copy(ours) == ours
    for one in fields(ours):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(ours, one.name, 1)
        with pytest.raises(dataclasses.FrozenInstanceError):
            delattr(ours, one.name)
    try:
        expected = hash(theirs)
    except TypeError:
        with pytest.raises(TypeError):
            hash(ours)
    else:
        assert hash(ours) == expected


@pytest.mark.parametrize(("name", "values", "named"), [("Place", (), {}), ("Place", (1, "a", [], 2), {}), ("One", (1,), {"other": 1}), ("Nothing", (1,), {})])
def test_wrong_arguments_are_refused(name: str, values: tuple[object, ...], named: dict[str, object]) -> None:
    for kinds in (OURS, THEIRS):
        with pytest.raises(TypeError, match=r"__init__\(\)"):
            kinds[name](*values, **named)


def test_values_that_are_made_are_no_ones_else() -> None:
    assert Place(1).seen is not Place(1).seen
    assert replace(Place(1, "a"), line=2) == Place(2, "a") and Place(1, "a").shown == "a:1"
    assert pickle.loads(pickle.dumps(Place(1, "a", [2]))) == Place(1, "a", [2])


def test_a_record_without_slots_keeps_what_it_works_out() -> None:
    one = OURS["Open"](2)
    assert one.double == 4 and one == OURS["Open"](2) and vars(one)["double"] == 4


def test_what_is_unusual_is_left_to_the_library() -> None:
    assert OURS["Ordered"](1) < OURS["Ordered"](2)
    assert OURS["Hidden"](1, "a") == OURS["Hidden"](1, "b") and "note" not in repr(OURS["Hidden"](1, "a"))
