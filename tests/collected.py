"""One test for many values, where each takes no time: it names every value that fails, with its reason."""

from __future__ import annotations

import functools
import inspect
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

_Test = Callable[..., None]
_Row = type(pytest.param())
# What a name of a value is cut to.
_LENGTH = 100

ONLY: tuple[str, ...] = ()
"""What each ``--rule`` names: values of other names are left out."""


def for_every(
    names: str | Sequence[str], values: Iterable[Any], ids: Callable[[Any], object] | Iterable[object] | None = None
) -> Callable[[_Test], _Test]:
    """Call a test with each value, as `pytest.mark.parametrize` would; ``ids`` says what a value is named in a failure.

    ``pytest.mark.parametrize`` makes an item of each value instead, which for ten thousand values costs more than the
    tests. The other arguments are fixtures, made once for all values, but that each value has a ``tmp_path`` of its own.
    """
    arguments = [one.strip() for one in names.split(",")] if isinstance(names, str) else list(names)
    every = list(values)
    called = _called(every, len(arguments), ids)
    rows = [
        (name, dict(zip(arguments, _values(row, len(arguments)), strict=True)))
        for row, name in zip(every, called, strict=True)
    ]

    def decorate(test: _Test) -> _Test:
        # Of two tables every pair is tried.
        inner, names, others = getattr(test, "table", (test, [], [("", {})]))
        pairs = [(f"{name}-{other}".rstrip("-"), {**row, **more}) for name, row in rows for other, more in others]
        return _collected(inner, [*arguments, *names], pairs)

    return decorate


def _collected(test: _Test, arguments: Sequence[str], rows: Sequence[tuple[str, Mapping[str, Any]]]) -> _Test:
    """One test for rows, each with its name."""

    @functools.wraps(test)
    def collected(**fixtures: Any) -> None:
        # A test of nothing could not fail.
        complaints = [] if rows or ONLY else ["nothing to test"]
        skipped = []
        for number, (name, row) in enumerate(rows):
            if is_named(name):
                try:
                    test(**_fresh(fixtures, number), **row)
                except (Exception, pytest.fail.Exception) as error:
                    complaints.append(f"{name}: {_told(error, test)}")
                except pytest.skip.Exception as reason:
                    skipped.append(f"{name}: {reason}")
        if complaints:
            pytest.fail("\n".join(complaints), pytrace=False)
        if skipped:
            pytest.skip("\n".join(skipped))

    kept = [one for one in inspect.signature(test).parameters.values() if one.name not in arguments]
    collected.__signature__ = inspect.Signature(kept)  # type: ignore[attr-defined]
    collected.is_for_every = True  # type: ignore[attr-defined]
    collected.table = test, arguments, rows  # type: ignore[attr-defined]
    return collected


def is_chosen(item: str, test: object) -> bool:
    """Whether an item with this name is about the rule of ``--rule``: one of its own, or one about every rule."""
    return hasattr(test, "is_for_every") or is_named(item)


def is_named(name: str) -> bool:
    """Whether a name is one of a rule that ``--rule`` names, if any is named."""
    return not ONLY or any(one in name for one in ONLY)


def _called(rows: Sequence[Any], count: int, ids: Callable[[Any], object] | Iterable[object] | None) -> list[str]:
    """The names of all rows, in order; a function is asked for each value of a row, and may say None."""
    if callable(ids):
        said = [[ids(one) for one in _values(row, count)] for row in rows]
        return ["-".join(str(one) for one in names if one is not None) for names in said]
    given = list(ids) if ids is not None else [None] * len(rows)
    return [str(name) if name else _short(row) for row, name in zip(rows, given, strict=True)]


def _short(row: Any) -> str:
    if isinstance(row, _Row):
        return str(row.id) if row.id else _short(row.values)
    text = row if isinstance(row, str) else repr(row)
    text = text if text.isprintable() else repr(text)
    return text if len(text) <= _LENGTH else f"{text[:_LENGTH]}..."


def _values(row: Any, count: int) -> Sequence[Any]:
    if isinstance(row, _Row):
        assert not row.marks, f"{row.id}: a mark counts for an item, and these values share one"
        return row.values
    return (row,) if count == 1 else row


def _fresh(fixtures: Mapping[str, Any], number: int) -> dict[str, Any]:
    """The fixtures, with a folder for the value of this number instead of the one that all would share."""
    if "tmp_path" not in fixtures:
        return dict(fixtures)
    folder = fixtures["tmp_path"] / f"value{number}"
    folder.mkdir()
    return {**fixtures, "tmp_path": folder}


def _told(error: BaseException, test: _Test) -> str:
    """What has failed, and in which line of the test."""
    code = inspect.unwrap(test).__code__
    lines = [one.lineno for one in traceback.extract_tb(error.__traceback__) if one.filename == code.co_filename]
    place = f"{Path(code.co_filename).name}:{lines[-1]}: " if lines else ""
    return f"{place}{type(error).__name__}: {error}"
