"""Intervals: tests that hold in some steps only, by the remainder of a count: ``step % every == 0``."""

from __future__ import annotations

from ldlm_lint.code.table import Node
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.calls import UNKNOWN
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.modules import Module


class Intervals(Concept):
    """Answers for the tests of a program."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._periodic: dict[int, bool] = {}

    def is_periodic(self, module: Module, number: int) -> bool:
        """Whether a test holds in some steps only: by the remainder of a count."""
        key = module.base | number
        known = self._periodic.get(key)
        if known is None:
            self._periodic[key] = False
            known = self._periodic[key] = self._of_row(module, number)
        return known

    def _of_row(self, module: Module, number: int) -> bool:
        row = module.nodes[number]
        kind = row[0]
        if kind == "op":
            return row[1] == "Mod" or self.is_periodic(module, row[2]) or self.is_periodic(module, row[3])
        if kind == "cmp":
            if _counts_rounds(module, row):
                return True
            return self.is_periodic(module, row[2]) or any(self.is_periodic(module, one) for one in row[3])
        if kind == "bool":
            return any(self.is_periodic(module, one) for one in row[2])
        if kind in ("not", "copy"):
            return self.is_periodic(module, row[1])
        if kind == "un":
            return self.is_periodic(module, row[2])
        if kind == "phi":
            return any(self.is_periodic(module, one) for one in row[1])
        if kind == "choice":
            return self.is_periodic(module, row[2]) or self.is_periodic(module, row[3])
        if kind == "call":
            return self._returns_periodic(module.base | number)
        return kind == "param" and self._is_given_periodic(module, row)

    def _returns_periodic(self, call: int) -> bool:
        for function in self.program.targets_of.get(call, ()):
            module = self.program.module_of(function)
            if any(value and self.is_periodic(module, value) for value, _ in module.scopes[function & MASK].returns):
                return True
        return False

    def _is_given_periodic(self, module: Module, row: tuple[object, ...]) -> bool:
        """Whether all known callers pass such a test for a parameter."""
        function = module.base | int(str(row[1]))
        given = []
        for edge in self.program.callers(function):
            if edge.how != UNKNOWN:
                node = self.program.argument_node(edge.call, function, edge.how, str(row[2]))
                if node is not None:
                    given.append(self.is_periodic(self.program.module_of(node), node & MASK))
        return bool(given) and all(given)

    def rare_outcome(self, module: Module, number: int, seen: frozenset[int] = frozenset()) -> bool:
        """The outcome of a periodic test that occurs in few steps; ``seen`` are functions that lead to themselves."""
        row = module.nodes[number]
        if row[0] in ("not", "copy"):
            inner = self.rare_outcome(module, row[1], seen)
            return inner if row[0] == "copy" else not inner
        if row[0] == "call":
            function = min(self.program.targets_of.get(module.base | number, ()), default=None)
            return function is None or function in seen or self._rarely_returned(function, seen | {function})
        return not (row[0] == "op" or (row[0] == "cmp" and row[1] == ("NotEq",) and not _counts_rounds(module, row)))

    def _rarely_returned(self, function: int, seen: frozenset[int]) -> bool:
        home = self.program.module_of(function)
        periodic = (one for one, _ in home.scopes[function & MASK].returns if one and self.is_periodic(home, one))
        return next((self.rare_outcome(home, one, seen) for one in periodic), True)


def _counts_rounds(module: Module, row: Node) -> bool:
    """``seen // every != (seen - 1) // every``: a counter has wrapped around."""
    sides = [module.plain(one) for one in (row[2], *row[3])]
    return row[1] == ("NotEq",) and all(one[:2] == ("op", "FloorDiv") for one in sides) and sides[0][3] == sides[-1][3]
