"""Which models recompute their activations by torch's reentrant checkpoint: by calls in their forward passes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import TYPE_CHECKING

from ldlm_lint.program.atoms import MASK, TRUE
from ldlm_lint.program.queries import State

if TYPE_CHECKING:
    from ldlm_lint.program.queries import Queries

CHECKPOINTS = frozenset({"torch.utils.checkpoint.checkpoint", "torch.utils.checkpoint.checkpoint_sequential"})
_RUN = ("forward", "__call__", "training_step")
_MOST = 2_000
"""Functions that are looked at for one model."""


class Recomputing:
    """Answers for the objects of a program; ``trains_nothing`` tells which calls run what does not train."""

    def __init__(self, ask: Queries, trains_nothing: Callable[[int], bool]) -> None:
        self.ask = ask
        self._trains_nothing = trains_nothing
        self.program = ask.program

    @cached_property
    def _reentrant(self) -> dict[int, list[int]]:
        """The calls that are reentrant for certain, by the functions that they are in, nested ones by those around them
        too."""
        found: dict[int, list[int]] = {}
        for call in dict.fromkeys(call for call, _ in self.ask.calls_of(CHECKPOINTS)):
            given = self.ask.argument(call, "use_reentrant")
            told = given.state is State.GIVEN and all(self.program.ask(one) == frozenset([TRUE]) for one in given.sources)
            module = self.program.module_of(call)
            hands_on = any(name is None for name, _ in module.nodes[call & MASK][3])
            if told or (given.state is State.ABSENT and not hands_on):
                at = module.table.sites[call & MASK].scope
                while at > 0 and module.scopes[at].kind != "class":
                    found.setdefault(module.base | at, []).append(call)
                    at = module.scopes[at].parent
        return found

    def calls_of(self, objects: Iterable[int]) -> list[int]:
        """The reentrant checkpoints (their calls) that the forward passes of some objects (atoms) run, in parts that
        train."""
        if not self._reentrant:
            return []
        atoms = self.program.atoms.of
        owners = {int(atoms[one][1]) for one in objects if atoms[one][0] == "i"}
        todo = [function for owner in owners for function in self._runs(owner)]
        seen, found = set(todo), set[int]()
        while todo and len(seen) < _MOST:
            function = todo.pop()
            found.update(self._reentrant.get(function, ()))
            new = self._called(function) - seen
            seen |= new
            todo += new
        return sorted(found)

    def _runs(self, owner: int) -> list[int]:
        """The functions that run a module of a class: the first one of each name in the order of its bases."""
        found = []
        for name in _RUN:
            for one in self.program.order(owner):
                module = self.program.module_of(one)
                numbers = [number for number in module.scopes[one & MASK].bindings.get(name, ()) if module.nodes[number][0] == "def"]
                if numbers:
                    found.append(module.base | module.nodes[numbers[-1]][1])
                    break
        return found

    def _called(self, function: int) -> set[int]:
        module = self.program.module_of(function)
        found: set[int] = set()
        for call in module.scopes[function & MASK].calls:
            targets = self.program.targets_of.get(module.base | call, set())
            if targets and not self._trains_nothing(module.base | call):
                found |= targets
        return found
