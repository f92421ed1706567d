"""The loops of a training around a call: step loops, and those around a call that leads to one, also in callers of its
function."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from ldlm_lint.code.table import loops_above
from ldlm_lint.concepts.steps import Steps
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.codebase import Codebase, Concept

if TYPE_CHECKING:
    from ldlm_lint.program.modules import Module


class LoopAt(NamedTuple):
    """A loop of a module, by its number."""

    module: Module
    loop: int


class TrainingLoops(Concept):
    """Answers for the calls of a program."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._steps = code[Steps]

    def around(self, call: int) -> LoopAt | None:
        """The nearest loop that trains and runs a call (key)."""
        todo, seen = [call], {call}
        while todo:
            one = todo.pop(0)
            module = self.program.module_of(one)
            site = module.table.sites[one & MASK]
            for loop in loops_above(module.table.loops, site.loop):
                if self._trains(module, module.base | site.scope, loop):
                    return LoopAt(module, loop)
            if site.scope:
                above = [caller for caller in self.program.calls_of_function(module.base | site.scope) if caller not in seen]
                seen.update(above)
                todo += above
        return None

    def _trains(self, module: Module, function: int, loop: int) -> bool:
        """Whether a step is in a loop, or a call that leads to one."""
        if any(step is not None and loop in loops_above(module.table.loops, step) for step in self._steps.loops.get(function, ())):
            return True
        calls = (one for one in module.scopes[function & MASK].calls if loop in loops_above(module.table.loops, module.table.sites[one].loop))
        return any(not self._leading.isdisjoint(self._targets(module.base | one)) for one in calls)

    def _targets(self, call: int) -> set[int]:
        return self.program.targets_of.get(call, set())

    @cached_property
    def _leading(self) -> set[int]:
        """The functions that lead to a step."""
        found = set(self._steps.loops)
        todo = sorted(found)
        while todo:
            function = todo.pop()
            for call in self.program.calls_of_function(function) if function & MASK else ():
                above = self.program.function_of(call)
                if above not in found:
                    found.add(above)
                    todo.append(above)
        return found
