"""Loops that train one model after the other, such as folds, members and trials: each iteration creates the optimizer
that it steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ldlm_lint.code.table import loops_above
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.codebase import Codebase, Concept

if TYPE_CHECKING:
    from ldlm_lint.program.modules import Module

_STEPS = 12
_LEVELS = 3
"""Calls below a loop that are gone down."""


class TrainedAnew(Concept):
    """Answers for the counters of a program's loops."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._known: dict[tuple[int, int], bool] = {}

    def counts_models(self, key: int) -> bool:
        """Whether a counter (key) numbers such iterations: then there are as many files as models."""
        module = self.program.module_of(key)
        loop = loop_of(module, key & MASK)
        if loop < 0:
            return False
        if (module.index, loop) not in self._known:
            self._known[module.index, loop] = self._trains_another(module, loop)
        return self._known[module.index, loop]

    def _trains_another(self, module: Module, loop: int) -> bool:
        scope = module.table.loops[loop].scope
        calls = [one for one in module.scopes[scope].calls if loop in loops_above(module.table.loops, module.table.sites[one].loop)]
        inside = set(calls)
        steps = [one for one in module.table.named.get("step", ()) if one in inside]
        if steps:
            return any(_made_by(module, one) in inside for one in steps)
        return any(self._makes_its_own(module.base | one, _LEVELS) for one in calls)

    def _makes_its_own(self, call: int, levels: int) -> bool:
        """Whether a call leads to a function that makes the optimizer which it steps."""
        for function in sorted(self.program.targets_of.get(call, ())):
            module = self.program.module_of(function)
            own = module.scopes[function & MASK].calls
            steps = [one for one in module.table.named.get("step", ()) if one in own]
            if any(_made_by(module, one) in own for one in steps):
                return True
            if not steps and levels and any(self._makes_its_own(module.base | one, levels - 1) for one in own):
                return True
        return False


def loop_of(module: Module, number: int) -> int:
    """The loop that a value is the element, or the number, of; -1 if there is none."""
    for _ in range(_STEPS):
        row = module.nodes[number]
        if row[0] in ("copy", "part"):
            number = row[1]
        elif row[0] == "op":
            number = row[2]
        elif row[0] == "call" and row[2] and module.last_name(row[1]) in ("str", "int"):
            number = row[2][0]
        else:
            break
    row = module.nodes[number]
    loops = enumerate(module.table.loops) if row[0] == "elem" else ()
    return next((at for at, loop in loops if loop.kind == "for" and loop.value == row[1]), -1)


def _made_by(module: Module, step: int) -> int:
    """The call that creates the receiver of a method: ``optimizer = Adam(…)``, ``model, optimizer = build()``; 0 for
    none."""
    function = module.nodes[module.nodes[step][1]]
    number = function[1] if function[0] == "attr" else 0
    for _ in range(_STEPS):
        row = module.nodes[number]
        if row[0] in ("copy", "part", "item"):
            number = row[1]
        else:
            # A value that a loop only changes, ``model = merged(model)``, exists before it.
            break
    return number if module.nodes[number][0] == "call" else 0


__all__ = ["TrainedAnew", "loop_of"]
