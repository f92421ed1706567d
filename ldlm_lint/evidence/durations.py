"""Times in words: one unit that a reader needs not convert."""

from __future__ import annotations


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
        # What rounds up to the next unit is written in it: 999.9 ms are 1 s.
        if abs(seconds) >= 0.9995 * size:
            return f"{_digits(seconds / size)} {short}"
    return f"{_digits(seconds * 1e6)} us"


def _digits(number: float) -> str:
    """Three significant digits, all digits of whole numbers, and no exponent.

    >>> _digits(2.254), _digits(999.6), _digits(36001.0)
    ('2.25', '1,000', '36,001')
    """
    return f"{number:,.0f}" if abs(number) >= 99.95 else f"{number:.3g}"
