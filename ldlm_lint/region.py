"""Ranges in files as viewers count them that show a file without parsing it."""

from __future__ import annotations

from typing import NamedTuple


class Region(NamedTuple):
    """A stretch of a file: 1-based lines and columns (characters), the end after it; and the same in bytes."""

    line: int
    column: int
    end_line: int
    end_column: int
    start: int
    end: int
