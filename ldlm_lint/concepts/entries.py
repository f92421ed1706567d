"""Loops over the entries of a mapping: a single entry on the device makes the loop wait.

    for name, value in losses.items():
        total[name] += float(value)        # losses contains a number of steps in addition to the loss
"""

from __future__ import annotations

from collections.abc import Iterator

from ldlm_lint.program import Program
from ldlm_lint.program.atoms import FIRST, Value
from ldlm_lint.program.handles import Expr
from ldlm_lint.program.mappings import Mappings


class Entries:
    """The entries of the mappings that loops go through."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._mappings = Mappings(program)

    def of(self, expr: Expr) -> Iterator[Value]:
        """The possible values of the entries that an expression iterates over; empty if it does not iterate over a
        mapping."""
        for mapping in self._mappings_behind(expr):
            for keys in self._mappings.keys(mapping).entries.values():
                yield frozenset().union(*map(self.program.get, keys))

    def _mappings_behind(self, expr: Expr) -> Iterator[Value]:
        """The mappings whose values a loop iterates over: ``for name, value in losses.items()``, ``for value in
        losses.values()``."""
        at, wanted = expr.plain, "values"
        if at.part == 1 and at.base is not None:
            at, wanted = at.base.plain, "items"
        if at.kind != "elem" or at.base is None:
            return
        for one in sorted(at.base.value):
            fields = self.program.atoms.of[one] if one >= FIRST else ("",)
            if fields[0] == "view" and fields[1] == wanted:
                mapping = self.program.get(fields[2])
                yield frozenset(two for two in mapping if two >= FIRST and self.program.atoms.of[two][0] == "d")
