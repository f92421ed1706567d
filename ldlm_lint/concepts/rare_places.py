"""Places that run, within their function, far less often than the code around them."""

from __future__ import annotations

from ldlm_lint.code.table import Guard
from ldlm_lint.concepts.early_exits import EarlyExits
from ldlm_lint.concepts.frequency import Frequency
from ldlm_lint.concepts.rarity import Rarity
from ldlm_lint.concepts.restarts import Restarts
from ldlm_lint.concepts.steps import Steps
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.modules import Module

_LEAVES = ("return", "break")


class RarePlaces(Concept):
    """Answers for the guards of a program."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._steps = code[Steps]
        self._frequency = code[Frequency]
        self._rarity = code[Rarity]
        self._restarts = code[Restarts]
        self._exits = code[EarlyExits]
        self._behind: dict[int, bool] = {}

    def is_one(self, module: Module, guard: int, place: int, function: int) -> bool:
        """Whether code under a guard of a function runs rarely."""
        at = guard
        while at >= 0:
            one = module.table.guards[at]
            if self._lets_through_rarely(module, one, at, function) and not self._frequency.steps_under(module, at, function):
                return True
            at = one.parent
        begins = module.scopes[function & MASK].place
        return self._exits.are_before(module, guard, place, begins) and not self._steps_behind_exits(module, function)

    def _steps_behind_exits(self, module: Module, function: int) -> bool:
        """Whether what leads to the backward passes is behind such a test itself: then the rest decides what a step is."""
        if function not in self._behind:
            scope = module.scopes[function & MASK]
            leading = (module.table.sites[call] for call in scope.calls if module.base | call in self._steps.leading)
            self._behind[function] = any(self._exits.are_before(module, site.guard, site.place, scope.place) for site in leading)
        return self._behind[function]

    def _lets_through_rarely(self, module: Module, guard: Guard, number: int, function: int) -> bool:
        if guard.kind not in ("if", "rest") or not guard.test or guard.holds is None:
            return False
        if self._rarity.outcome(module, guard.test) is guard.holds:
            return True
        if guard.kind == "if" and guard.ends in _LEAVES and self._stands_in_steps(module, number, function):
            return True
        return self._restarts.is_set_once(module, guard, number, function) or self._restarts.is_deadline(module, guard.test, number, function)

    def _stands_in_steps(self, module: Module, guard: int, function: int) -> bool:
        """Whether a block that leaves is right in the loop of steps: it ends the training."""
        sites = (module.table.sites[call] for call in module.scopes[function & MASK].calls)
        loop = next((site.loop for site in sites if site.guard == guard), -1)
        return loop >= 0 and module.base | module.table.loops[loop].value in self._steps.repeated


__all__ = ["RarePlaces"]
