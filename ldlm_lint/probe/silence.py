"""Silences warnings caused by the probe's own queries."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any


def first(entry: tuple[Any, ...]) -> None:
    """Put a filter before all others.

    Not by ``filterwarnings`` or ``catch_warnings``: after these Python shows every warning again that a program has been
    shown once already.
    """
    filters: Any = warnings.filters
    filters.insert(0, entry)


def drop(entry: tuple[Any, ...]) -> None:
    """Remove a filter again, if it exists."""
    filters: Any = warnings.filters
    filters[:] = [one for one in filters if one is not entry]


@contextlib.contextmanager
def silenced() -> Iterator[None]:
    """No warning is shown inside of it."""
    entry = ("ignore", None, Warning, None, 0)
    first(entry)
    try:
        yield
    finally:
        drop(entry)
