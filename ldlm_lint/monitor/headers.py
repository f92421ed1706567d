"""The head of a log line: when it was written and by which rank."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timezone

from ldlm_lint.monitor.numbers import MARK

_N = MARK
_TIME = re.compile(
    rf"(?:(?P<date>{_N}(?:(?:-{_N}-|/{_N}/){_N}|/{_N}))[T,]? ?|(?<!\w)(?P<compact>{_N}) ?)(?P<clock>{_N}:{_N}:{_N})"
)
_RANK = re.compile(rf"(?i)[\[(]rank[ :=]?(?P<rank>{_N})(?:/{_N})?[\])]|,\s*rank=(?P<equals>{_N})\]")
# Those that count processes in other words do so first of all: `rank 2 step 5`, `GPU 0: step 10`.
_FIRST = re.compile(
    rf"[^A-SU-Ya-z_]{{0,60}}(?i:(?:local_|global_)?(?:rank|gpu|worker|process|proc))[ :=#]{{0,2}}(?P<rank>{_N})[\]\s:|,]"
)
# A time is at the head, after a name or two at most; later in the line it may be something else, such as an ETA.
_HEAD = 80


def time(text: str) -> tuple[int, ...]:
    """The indices of the numbers of a line's date and time; empty if it has none."""
    found = _TIME.search(text, 0, _HEAD)
    if not found:
        return ()
    first = text.count(MARK, 0, found.start())
    return tuple(range(first, first + found[0].count(MARK)))


def rank(text: str) -> int:
    """The index of the number of the rank; -1 if there is none."""
    found = _RANK.search(text)
    if found:
        return text.count(MARK, 0, found.start("rank") if found["rank"] else found.start("equals"))
    found = _FIRST.match(text)
    return text.count(MARK, 0, found.start("rank")) if found else -1


_DIGITS = re.compile(r"[0-9]+")
_KEPT = 1000
_SECONDS = re.compile(r"[0-9]{1,2}(?:\.[0-9]+)?")


class Clock:
    """Seconds since 1970 from the numbers of a date; lines of one minute share the computation."""

    def __init__(self) -> None:
        self._minute: Sequence[str] = ""
        self._start: float | None = None
        self._passed: dict[str, float] = {}

    def read(self, numbers: Sequence[str]) -> float | None:
        """The time in these numbers; None if they are not a time."""
        minute = numbers[:-1]
        if minute != self._minute:
            self._minute, self._start = minute, _minute(minute)
        return self._after(numbers[-1])

    def at(self, minute: str, seconds: str) -> float | None:
        """The time in a minute as text, whose numbers are its digits."""
        if minute != self._minute:
            self._minute, self._start = minute, _minute(_DIGITS.findall(minute))
        return self._after(seconds)

    def _after(self, seconds: str) -> float | None:
        if self._start is None:
            return None
        passed = self._passed.get(seconds)
        if passed is None:
            said = seconds.replace(",", ".").strip()
            if not _SECONDS.fullmatch(said):
                return None
            if len(self._passed) > _KEPT:
                self._passed.clear()
            passed = self._passed[seconds] = float(said)
        return self._start + passed


def _minute(numbers: Sequence[str]) -> float | None:
    try:
        values = [int(number) for number in numbers]
        if len(values) == 3:  # 20251202 06:56
            day, values = values[0], values[1:]
            values = [day // 10000, day // 100 % 100, day % 100, *values]
        elif len(values) == 4:  # 12/13 08:03, without a year
            values = [2000, *values]
        if values[0] < 1000:  # 30/11/2025
            values[:3] = [values[2], *(values[:2] if values[0] <= 12 else values[1::-1])]
        # At most seven numbers: they do not reach the zone.
        return datetime(*values, tzinfo=timezone.utc).timestamp()  # type: ignore[misc, arg-type]
    except (ValueError, TypeError, OverflowError):
        return None
