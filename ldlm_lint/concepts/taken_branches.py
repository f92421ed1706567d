"""Whether calls can lead to a place by what they pass, and by the objects that they are made on: ``checkpoint(path)`` does
not come to the branch that saves under ``if model is not None``, nor ``model.save()`` to a class that ``model`` is not."""

from __future__ import annotations

from collections.abc import Sequence

from ldlm_lint.program.arms import Arms, Entries, Entry
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.calls import UNKNOWN
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.modules import Module


class TakenBranches(Concept):
    """Answers for chains of calls of a program."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._ask = code.ask
        self._arms = Arms(code.ask)

    def may_lead(self, chain: Sequence[int]) -> bool:
        """Whether each call (key) of a chain can be made, the innermost first, given what those around it pass."""
        entries: Entries = ()
        for index in range(len(chain) - 1, -1, -1):
            call = chain[index]
            module = self.program.module_of(call)
            if not self._arms.may_take(module, module.table.sites[call & MASK].guard, entries):
                return False
            if index:
                function = self.program.function_of(chain[index - 1])
                if self._goes_elsewhere(module, call, function):
                    return False
                entries = (*entries, Entry(function, call, self._binding(call, function)))
        return True

    def is_undecided(self, call: int) -> bool:
        """Whether a call (key) may go to several functions: what the object is depends on the run."""
        return len(self.program.targets_of.get(call, ())) > 1

    def _goes_elsewhere(self, module: Module, call: int, function: int) -> bool:
        """Whether a call of a method goes to other classes than that of a function: all that its object may be are known."""
        row = module.plain(module.nodes[call & MASK][1])
        if row[0] != "attr" or function not in self.program.owner:
            return False
        targets = self.program.targets_of.get(call, ())
        return bool(targets) and function not in targets and self._ask.is_complete(module.base | row[1])

    def _binding(self, call: int, function: int) -> int:
        """How the arguments of a call are bound to the parameters of a function, see `ldlm_lint.program.calls`."""
        found = {edge.how for edge in self.program.callers(function) if edge.call == call}
        return found.pop() if len(found) == 1 else UNKNOWN


__all__ = ["TakenBranches"]
