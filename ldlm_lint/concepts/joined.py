"""How places of a program belong together: over confirmed calls, or through the object whose methods they are in.

A finding names another place only where such a path leads to it.
"""

from __future__ import annotations

import enum

from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.codebase import Codebase, Concept


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
        self._above: dict[int, frozenset[int]] = {}

    def path(self, one: int, other: int) -> Path:
        """The closest path between two functions (keys)."""
        if one == other or other in self._outer(one) or one in self._outer(other):
            return Path.SAME
        mine, its = self.above(one), self.above(other)
        if one in its:
            return Path.CALLED
        if other in mine:
            return Path.CALLING
        first, second = self.program.owner.get(one), self.program.owner.get(other)
        if first is not None and second is not None and (first in self.program.order(second) or second in self.program.order(first)):
            return Path.ONE_OBJECT
        return Path.COMMON_CALLER if mine & its else Path.NONE

    def above(self, function: int) -> frozenset[int]:
        """A function and those that lead to it."""
        if function not in self._above:
            seen, todo = {function}, [function]
            while todo:
                one = todo.pop()
                fresh = {self.program.function_of(call) for call in self.program.calls_of_function(one)} | self._outer(one)
                todo += fresh - seen
                seen |= fresh
            self._above[function] = frozenset(seen)
        return self._above[function]

    def _outer(self, function: int) -> set[int]:
        """The functions that an inner one is defined in."""
        module, found = self.program.module_of(function), set[int]()
        at = module.scopes[function & MASK].parent
        while at > 0:
            if module.scopes[at].kind == "def":
                found.add(module.base | at)
            at = module.scopes[at].parent
        return found


__all__ = ["Joined", "Path"]
