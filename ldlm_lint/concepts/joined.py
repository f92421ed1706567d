"""How places of a program belong together: over confirmed calls, or through the object whose methods they are in.

A finding names another place only where such a path leads to it.
"""

from __future__ import annotations

import enum

from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Function


class Path(enum.IntEnum):
    """What joins two functions, the closest first."""

    SAME = 0
    CALLED = 1
    """The first one calls the second one, directly or through others."""
    CALLING = 2
    ONE_OBJECT = 3
    """They are methods of one class, or of a class and its base."""
    COMMON_CALLER = 4
    NONE = 5


class Joined(Concept):
    """The paths between the functions of a program."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._above: dict[Function, frozenset[Function]] = {}

    def path(self, one: Function, other: Function) -> Path:
        """The closest path between two functions."""
        if one == other or other in one.around or one in other.around:
            return Path.SAME
        mine, its = self._leading_to(one), self._leading_to(other)
        if one in its:
            return Path.CALLED
        if other in mine:
            return Path.CALLING
        if one.owner is not None and other.owner is not None and (one.owner in other.owner.bases or other.owner in one.owner.bases):
            return Path.ONE_OBJECT
        return Path.COMMON_CALLER if mine & its else Path.NONE

    def _leading_to(self, function: Function) -> frozenset[Function]:
        """A function and those that lead to it: their callers, and the functions that they are defined in."""
        if function not in self._above:
            found = [function]
            seen = {function}
            for one in found:
                found += (fresh := {*(call.function for call in one.callers), *one.around} - seen)
                seen |= fresh
            self._above[function] = frozenset(seen)
        return self._above[function]


__all__ = ["Joined", "Path"]
