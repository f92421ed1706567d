"""Places behind tests that a usual step does not pass: the function or the iteration has ended before."""

from __future__ import annotations

from collections import defaultdict

from ldlm_lint.concepts.outcomes import Outcomes
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Expr, Guard
from ldlm_lint.program.modules import Module
from ldlm_lint.program.spots import Spot

_LEAVES = ("return", "continue")
_Arms = dict[bool, Guard]
_Blocks = dict["Guard | None", dict[Expr, _Arms]]
"""The arms of tests, by the condition that they are under."""


class EarlyExits(Concept):
    """Answers for the places of a program."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._outcomes = code[Outcomes]
        self._files: dict[int, _Blocks] = {}

    def are_before(self, spot: Spot) -> bool:
        """Whether a block around a place in its function has such a test before it."""
        blocks, around, begins = self._in(spot.function.module), set(spot.guards), spot.function.spot.place
        block = _block(spot.guard)
        while True:
            for test, arms in blocks.get(block, {}).items():
                # A place in an arm of a test is not after it; the test itself runs in each step.
                first = min(arms.values(), key=lambda one: one.begin)
                is_behind = around.isdisjoint(arms.values()) and begins <= first.begin and first.line < spot.line
                if is_behind and self._is_left(blocks, test, arms):
                    return True
            if block is None:
                return False
            block = _block(block.outer)

    def _is_left(self, blocks: _Blocks, test: Expr, arms: _Arms) -> bool:
        """Whether of both outcomes each leaves, or is rare, and one of them leaves."""
        rare = self._outcomes.rare(test)
        leaves = {holds for holds, arm in arms.items() if self._leaves(blocks, arm)}
        return bool(leaves) and all(holds in leaves or rare is holds for holds in (True, False))

    def _leaves(self, blocks: _Blocks, arm: Guard) -> bool:
        return arm.ends in _LEAVES or any(self._is_left(blocks, test, arms) for test, arms in blocks.get(arm, {}).items())

    def _in(self, module: Module) -> _Blocks:
        if module.index not in self._files:
            found: _Blocks = defaultdict(lambda: defaultdict(dict))
            for guard in self.code.guards_in(module):
                if guard.kind == "if" and guard.holds is not None:
                    found[_block(guard.outer)][guard.test][guard.holds] = guard
            self._files[module.index] = dict(found)
        return self._files[module.index]


def _block(guard: Guard | None) -> Guard | None:
    """The condition of the block that something is in: code after its early exit is a part of it."""
    while guard is not None and guard.kind == "rest":
        guard = guard.outer
    return guard


__all__ = ["EarlyExits"]
