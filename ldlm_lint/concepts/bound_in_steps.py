"""What a name holds in training steps, where it is bound on several ways.

    run = self.show if not self.training else self.learn
    return run(batch)                 # goes to `learn` in each training step
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from ldlm_lint.code.table import Node
from ldlm_lint.concepts.frequency import Frequency
from ldlm_lint.concepts.training_tests import TrainingTests
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.modules import Module


class BoundInSteps(Concept):
    """Answers for the calls of a program."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._passes = code[Frequency].passes
        self._outcome = code[TrainingTests].outcome
        self._guards: dict[int, dict[int, list[int]]] = {}

    def targets(self, call: int) -> set[int]:
        """The functions that a call may go to in a training step."""
        targets = self.program.targets_of.get(call, set())
        if len(targets) < 2:
            return targets
        module = self.program.module_of(call)
        number = module.nodes[call & MASK][1]
        ways, left = self._ways(module, number, module.base | module.table.sites[call & MASK].scope)
        if not left:
            return targets
        wanted = {function for way in ways for function, _ in self.program.targets(self.program.get(module.base | way), None)[0]}
        return targets & wanted or targets

    def _ways(self, module: Module, number: int, function: int) -> tuple[set[int], bool]:
        """What an expression may stand for in a step, and whether it may stand for anything else outside."""
        found: set[int] = set()
        is_left = False
        todo, seen = [number], {number}
        while todo:
            one = todo.pop()
            every = _alternatives(module.nodes[one])
            if not every:
                found.add(one)
            taken = [way for way in every if self._is_taken(module, one, way, function)]
            is_left = is_left or len(taken) < len(every)
            todo += [way for way in taken if way not in seen]
            seen.update(taken)
        return found, is_left

    def _is_taken(self, module: Module, of: int, way: int, function: int) -> bool:
        """Whether an expression may be a certain alternative in a step."""
        row = module.nodes[of]
        if row[0] == "choice" and row[2] != row[3]:
            return self._outcome(module, row[1]) is not (way != row[2])
        guards = self._guards_of(module, function).get(way) if row[0] == "phi" else None
        return not guards or any(self._passes(module, guard, function) for guard in guards)

    def _guards_of(self, module: Module, function: int) -> dict[int, list[int]]:
        """The guards under which names are bound to the expressions of a function."""
        if function not in self._guards:
            self._guards[function] = defaultdict(list)
            for kind, number, _, guard, _, _ in module.scopes[function & MASK].events:
                if kind == "bind":
                    self._guards[function][number].append(guard)
        return self._guards[function]


def _alternatives(row: Node) -> Sequence[int]:
    """The expressions one of which another one is; empty for all others."""
    if row[0] in ("copy", "phi"):
        return (row[1],) if row[0] == "copy" else row[1]
    if row[0] == "choice":
        return row[2:4]
    return row[2] if row[0] == "bool" else ()


__all__ = ["BoundInSteps"]
