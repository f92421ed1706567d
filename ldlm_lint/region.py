"""Stretches of files as those count who show a file and know nothing of what is in it."""

from __future__ import annotations

from typing import NamedTuple


class Region(NamedTuple):
    """A stretch of a file: 1-based lines and columns (characters), the end behind it; and the same in bytes."""

    line: int
    column: int
    end_line: int
    end_column: int
    start: int
    end: int
