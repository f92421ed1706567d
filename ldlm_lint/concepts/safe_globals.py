"""Where `torch.load` is told which classes a file may name: whoever does that relies on ``weights_only``, which is on by default."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.queries import Queries

if TYPE_CHECKING:
    from ldlm_lint.program import Program
    from ldlm_lint.program.modules import Module

_SCOPES = frozenset({"torch.serialization.safe_globals"})
_LISTS = frozenset({"torch.serialization.add_safe_globals"})


class SafeGlobals:
    """The lists of allowed classes of a program."""

    def __init__(self, ask: Queries) -> None:
        self.ask = ask
        self.program: Program = ask.program

    def cover(self, call: int) -> bool:
        """Whether a call runs with such a list: inside of its ``with``, in all of its callers' or in a program that adds to the list."""
        module = self.program.module_of(call)
        if not self._adding.isdisjoint(self.program.together.programs_of(module)):
            return True
        return bool(self._scopes) and self._is_inside(call, set())

    @cached_property
    def _adding(self) -> frozenset[int]:
        return frozenset(self.program.module_of(call).index for call, _ in self.ask.calls_of(_LISTS))

    @cached_property
    def _scopes(self) -> frozenset[int]:
        return frozenset(call for call, _ in self.ask.calls_of(_SCOPES))

    def _is_inside(self, call: int, seen: set[int]) -> bool:
        module = self.program.module_of(call)
        site = module.table.sites[call & MASK]
        if self._is_under(module, site.guard) or self._is_entered(module, call & MASK):
            return True
        function = module.base | site.scope
        if site.scope == 0 or function in seen:
            return False
        seen.add(function)
        self.program.ask(("callers", function))
        edges = self.program.ask(("edges", function))
        return bool(edges) and all(self._is_inside(edge >> 2, seen) for edge in edges)

    def _is_under(self, module: Module, guard: int) -> bool:
        while guard >= 0:
            one = module.table.guards[guard]
            if one.kind == "with" and (module.base | one.test) in self._scopes:
                return True
            guard = one.parent
        return False

    def _is_entered(self, module: Module, call: int) -> bool:
        """``stack.enter_context(safe_globals(…))`` before, in the same function."""
        site = module.table.sites[call]
        for other in module.scopes[site.scope].calls:
            row = module.nodes[other]
            if module.table.sites[other].place < site.place and any((module.base | one) in self._scopes for one in row[2]):
                return True
        return False
