"""Programs: what starts, and leads to a function by calls; the modules that each of them loads."""

from __future__ import annotations

from ldlm_lint.concepts.builders import Builders
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Class

ANY = -1
"""Some program that the code does not show: a configuration or a registry brings the function there."""


class Programs(Concept):
    """The programs that functions run in, each by the module that it starts in."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self.builders = code[Builders]
        self.scripts: set[int] = set()
        """The modules (indexes) whose own statements lead to one of the functions that were asked for."""

    def of(self, function: int) -> frozenset[int]:
        """The modules (indexes) in which the calls that lead to a function begin; empty if it is a method of a class
        that nothing builds."""
        program = self.program
        found: set[int] = set()
        todo, seen = [function], {function}
        while todo:
            one = todo.pop()
            above = self._above(one)
            if above is None:
                found.add(ANY)
            elif one & MASK == 0:
                self.scripts.add(program.module_of(one).index)
                found.add(program.module_of(one).index)
            elif not above and one not in program.owner:
                found.add(program.module_of(one).index)
            for other in above or ():
                if other not in seen:
                    seen.add(other)
                    todo.append(other)
        return frozenset(found)

    def _above(self, function: int) -> list[int] | None:
        """The functions that call a function, hold it, or build the objects that it is a method of; None if some of
        them are unknown."""
        program = self.program
        if function & MASK == 0:
            return []
        edges = program.callers(function)
        if edges:
            return [program.function_of(edge.call) for edge in edges]
        owner = program.owner.get(function)
        if owner is not None:
            building = self.builders.functions_for(Class(self.code, owner))
            return [one.key for one in building] if building is not None else None
        module = program.module_of(function)
        scope = module.scopes[function & MASK].parent
        while scope > 0 and module.scopes[scope].kind != "def":
            scope = module.scopes[scope].parent
        return [module.base | scope] if scope > 0 else []

    def loads(self, started: int) -> frozenset[int]:
        """The modules that the program of a starting module loads."""
        program = self.program
        return frozenset(one.index for one in program.live) if started == ANY else program.together.loaded_by(program.modules.all[started])
