"""Places behind tests that a usual step does not pass: the function or the iteration has ended before."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from ldlm_lint.code.table import guards_above, line_of
from ldlm_lint.concepts.outcomes import Outcomes
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import expression

if TYPE_CHECKING:
    from ldlm_lint.program.modules import Module
    from ldlm_lint.program.spots import Spot

_LEAVES = ("return", "continue")
Arms = dict[bool, int]


class EarlyExits(Concept):
    """Answers for the guards of a program's modules."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._outcomes = code[Outcomes]
        self._blocks: dict[int, dict[int, dict[int, Arms]]] = {}

    def are_before(self, spot: Spot) -> bool:
        """Whether a block around a place in its function has such a test before it."""
        module, place, begins = spot.function.module, spot.place, spot.function.spot.place
        guard = spot.guard.key & MASK if spot.guard is not None else -1
        around = set(guards_above(module.table.guards, guard))
        guard = _block(module, guard)
        while True:
            tests = self._of(module).get(guard, {})
            for test, arms in tests.items():
                if not around.isdisjoint(arms.values()):
                    # The place is in an arm of it, not after it.
                    continue
                first = min(module.table.guards[one].place for one in arms.values())
                # The test itself runs in each step.
                if begins <= first and line_of(first) < line_of(place) and self._is_left(module, test, arms):
                    return True
            if guard < 0:
                return False
            guard = _block(module, module.table.guards[guard].parent)

    def _is_left(self, module: Module, test: int, arms: Arms) -> bool:
        """Whether of both outcomes each leaves, or is rare, and one of them leaves."""
        rare = self._outcomes.rare(expression(self.code, module.base | test))
        leaves = {holds: number for holds, number in arms.items() if self._leaves(module, number)}
        return bool(leaves) and all(holds in leaves or rare is holds for holds in (True, False))

    def _leaves(self, module: Module, guard: int) -> bool:
        if module.table.guards[guard].ends in _LEAVES:
            return True
        tests = self._of(module).get(guard, {})
        return any(self._is_left(module, test, arms) for test, arms in tests.items())

    def _of(self, module: Module) -> dict[int, dict[int, Arms]]:
        """The arms of the tests of a module, by the guard that they are under."""
        if module.index not in self._blocks:
            found: dict[int, dict[int, Arms]] = defaultdict(lambda: defaultdict(dict))
            for number, one in enumerate(module.table.guards):
                if one.kind == "if" and one.test and one.holds is not None:
                    found[_block(module, one.parent)][one.test][one.holds] = number
            self._blocks[module.index] = found
        return self._blocks[module.index]


def _block(module: Module, guard: int) -> int:
    """The guard of the block that something is in: code after its early exit is a part of it."""
    while guard >= 0 and module.table.guards[guard].kind == "rest":
        guard = module.table.guards[guard].parent
    return guard
