"""Figures as text: times, bytes and counts in a readable unit."""

from __future__ import annotations

import math

RATIOS = ("x", "ratio")
_BYTES = ("B", "KiB", "MiB", "GiB", "TiB")


def duration(seconds: float) -> str:
    """A time with its unit, in three digits; whole minutes and hours as such.

    >>> duration(0.0000125), duration(0.1426), duration(2.25), duration(99)
    ('12.5 us', '143 ms', '2.25 s', '99 s')
    >>> duration(7200), duration(1800), duration(3725)
    ('2 h', '30 min', '3,725 s')
    """
    for unit, name in ((3600, "h"), (60, "min")):
        if seconds >= unit and seconds % unit == 0:
            return f"{int(seconds // unit)} {name}"
    for size, short in ((1.0, "s"), (1e-3, "ms")):
        # A value that rounds up to the next unit is written in it: 999.9 ms are 1 s.
        if abs(seconds) >= 0.9995 * size:
            return f"{_digits(seconds / size)} {short}"
    return f"{_digits(seconds * 1e6)} us"


def _digits(number: float) -> str:
    """Three significant digits, all digits of whole numbers, and no exponent.

    >>> _digits(2.254), _digits(999.6), _digits(36001.0)
    ('2.25', '1,000', '36,001')
    """
    return f"{number:,.0f}" if abs(number) >= 99.95 else f"{number:.3g}"


def amount(value: float, unit: str) -> str:
    """A number with its unit: bytes in the power of 1024 that fits, other numbers with three significant digits."""
    if unit in ("bytes", "B", "byte") and math.isfinite(value):
        power = next((at for at in range(len(_BYTES)) if abs(value) < 1024 ** (at + 1)), len(_BYTES) - 1)
        return f"{value:.0f} B" if power == 0 else f"{value / 1024**power:.2f} {_BYTES[power]}"
    number = f"{value:,}" if isinstance(value, int) or (value.is_integer() and abs(value) < 1e15) else _short(value)
    number = number.removesuffix(".0")
    return f"{number}x" if unit in RATIOS else f"{number} {unit}".rstrip()


def _short(value: float) -> str:
    """At least two decimals up to a hundred, so that 1.004 and 1.04 differ; none above."""
    return f"{value:.3g}" if abs(value) < 0.1 else f"{value:.2f}" if abs(value) < 100 else f"{value:,.0f}"
