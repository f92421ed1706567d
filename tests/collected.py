"""One test for many values, where each takes no time: it names every value that fails, with its reason."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import pytest

_Value = TypeVar("_Value")
_Test = Callable[..., None]

ONLY = ""
"""The rule that ``--rule`` names: values of other names are left out."""


def for_every(name: str, values: Iterable[_Value], called: Callable[[_Value], str] = str) -> Callable[[_Test], _Test]:
    """Call a test with each value as the argument ``name``; ``called`` says what a value is named in a failure.

    ``pytest.mark.parametrize`` makes an item of each value instead, which for ten thousand values costs more than the
    tests. The other arguments are fixtures, made once for all values.
    """
    every = list(values)

    def decorate(test: _Test) -> _Test:
        @functools.wraps(test)
        def collected(**fixtures: Any) -> None:
            # A test of nothing could not fail.
            complaints = [] if every or ONLY else [f"no {name} to test"]
            for value in every:
                if ONLY in called(value):
                    try:
                        test(**fixtures, **{name: value})
                    except (Exception, pytest.fail.Exception) as error:
                        complaints.append(f"{called(value)}: {type(error).__name__}: {error}")
            if complaints:
                pytest.fail("\n".join(complaints), pytrace=False)

        given = inspect.signature(test).parameters.values()
        collected.__signature__ = inspect.Signature([one for one in given if one.name != name])  # type: ignore[attr-defined]
        collected.is_for_every = True  # type: ignore[attr-defined]
        return collected

    return decorate


def is_chosen(item: str, test: object) -> bool:
    """Whether an item with this name is about the rule of ``--rule``: one of its own, or one about every rule."""
    return hasattr(test, "is_for_every") or ONLY in item

