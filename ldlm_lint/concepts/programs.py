"""Programs: what starts, and leads to a function by calls; the modules that each of them loads."""

from __future__ import annotations

from ldlm_lint.concepts.builders import Builders
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Function
from ldlm_lint.program.modules import Module
from ldlm_lint.program.together import closure

Start = Module | None
"""The file that a program starts in; None for a program that is not visible, of a user or a framework."""


class Programs(Concept):
    """The programs that functions run in, each by the file that it starts in."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self.builders = code[Builders]
        self.scripts: set[Module] = set()
        """The files whose own statements lead to one of the functions that were asked for."""

    def of(self, function: Function) -> frozenset[Start]:
        """The files in which the calls that lead to a function begin; empty if it is a method of a class that nothing
        builds."""
        found: set[Start] = set()
        for one in closure({function}, lambda at: self._above(at) or ()):
            above = self._above(one)
            if above is None:
                found.add(None)
            elif one.is_module:
                self.scripts.add(one.module)
                found.add(one.module)
            elif not above and one.owner is None:
                found.add(one.module)
        return frozenset(found)

    def _above(self, function: Function) -> list[Function] | None:
        """The functions that call a function, hold it, or build the objects that it is a method of; None if some of
        them are unknown."""
        if function.is_module or function.callers:
            return [] if function.is_module else [call.function for call in function.callers]
        if function.owner is not None:
            return self.builders.functions_for(function.owner)
        return [one for one in function.enclosing[1:] if not one.is_class][:1]

    def may_come_to(self, function: Function, start: Module) -> bool:
        """Whether a program that starts in a file may run a function.

        It runs the files that it imports. Of those that it may load by a computed name it runs what its own calls, or
        unknown ones, lead to: another script of the same folder is not a part of it.
        """
        together, module = self.program.together, function.module
        if module.index in together.imported_by(start):
            return True
        return module.index in together.loaded_by(start) and any(one is None or one is start for one in self._starts(function))

    def _starts(self, function: Function) -> set[Start]:
        """The files whose statements lead to a function, and None where something unknown does."""
        leading = closure({function}, lambda at: self._above(at) or ())
        return {one.module if one.is_module else None for one in leading if one.is_module or one.has_unknown_callers or not self._above(one)}

    def loads(self, start: Start) -> frozenset[Module]:
        """The files that a program may load."""
        program = self.program
        if start is None:
            return frozenset(self.code.modules)
        return frozenset(program.modules.all[one] for one in program.together.loaded_by(start))


__all__ = ["Programs", "Start"]
