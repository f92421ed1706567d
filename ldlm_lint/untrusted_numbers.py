"""Numbers of any length from untrusted files: Python refuses to convert some, and to print others."""

from __future__ import annotations

MOST_DIGITS = 300
"""CPython converts no more than 4,300 digits unless told otherwise, and none beyond 308 to a float."""
_BEYOND = 10**MOST_DIGITS


def whole(digits: str | bytes) -> int:
    """The number that decimal digits write; an absurdly long one counts as 10**300."""
    return int(digits) if len(digits) <= MOST_DIGITS else _beyond(digits)


def is_printable(value: object) -> bool:
    """Whether a value is not a number of more digits than is of use."""
    return not isinstance(value, int) or -_BEYOND < value < _BEYOND


def _beyond(digits: str | bytes) -> int:
    text = digits if isinstance(digits, str) else digits.decode("ascii", "replace")
    text = text.strip()
    significant = text.lstrip("+-0")
    if len(significant) <= MOST_DIGITS:
        return int(significant or "0") * (-1 if text.startswith("-") else 1)
    return -_BEYOND if text.startswith("-") else _BEYOND
