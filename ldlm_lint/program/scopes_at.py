"""The functions and classes around the places of a file."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ldlm_lint.program.modules import Module


class ScopesAt:
    """The scopes of one file in the order of its text, each with the one around it."""

    def __init__(self, module: Module) -> None:
        scopes = module.scopes
        self._numbers = sorted(range(1, len(scopes)), key=lambda one: (scopes[one].place, one))
        self._begins = [scopes[one].place for one in self._numbers]
        self._ends = [scopes[one].end for one in self._numbers]
        self._around: list[int] = []
        still_open: list[int] = []
        for at, begin in enumerate(self._begins):
            while still_open and self._ends[still_open[-1]] <= begin:
                still_open.pop()
            self._around.append(still_open[-1] if still_open else -1)
            still_open.append(at)

    def around(self, place: int) -> Iterator[int]:
        """The numbers of the scopes around a place, innermost first, without that of the module."""
        at = bisect_right(self._begins, place) - 1
        while at >= 0:
            if place < self._ends[at]:
                yield self._numbers[at]
            at = self._around[at]
