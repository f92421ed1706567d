"""Whether calls run inside of context managers: under a ``with``, on an exit stack, or in functions that are called
only there."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from ldlm_lint.program.atoms import MASK

if TYPE_CHECKING:
    from ldlm_lint.program import Program
    from ldlm_lint.program.modules import Module


class Entered:
    """Answers for the scopes that some calls (keys) make."""

    def __init__(self, program: Program, scopes: Collection[int]) -> None:
        self.program = program
        self.scopes = scopes

    def covers(self, call: int) -> bool:
        """Whether a call runs inside of one of the scopes, through any caller."""
        return bool(self.scopes) and self._is_inside(call, set())

    def _is_inside(self, call: int, seen: set[int]) -> bool:
        module = self.program.module_of(call)
        site = module.table.sites[call & MASK]
        if self._is_under(module, site.guard) or self._is_entered(module, call & MASK):
            return True
        function = module.base | site.scope
        if site.scope == 0 or function in seen:
            return False
        seen.add(function)
        edges = self.program.callers(function)
        return bool(edges) and all(self._is_inside(edge.call, seen) for edge in edges)

    def _is_under(self, module: Module, guard: int) -> bool:
        while guard >= 0:
            one = module.table.guards[guard]
            if one.kind == "with" and (module.base | one.test) in self.scopes:
                return True
            guard = one.parent
        return False

    def _is_entered(self, module: Module, call: int) -> bool:
        """``stack.enter_context(safe_globals(…))`` before, in the same function."""
        site = module.table.sites[call]
        for other in module.scopes[site.scope].calls:
            row = module.nodes[other]
            if module.table.sites[other].place < site.place and any((module.base | one) in self.scopes for one in row[2]):
                return True
        return False
