"""Whether calls can lead to a place by what they pass: ``checkpoint(path)`` does not come to the branch that saves under
``if model is not None``."""

from __future__ import annotations

from collections.abc import Sequence

from ldlm_lint.program.arms import Arms, Entries, Entry
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.calls import UNKNOWN
from ldlm_lint.program.queries import Queries


class TakenBranches:
    """Answers for chains of calls of a program."""

    def __init__(self, ask: Queries) -> None:
        self.program = ask.program
        self._arms = Arms(ask)

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
                entries = (*entries, Entry(function, call, self._binding(call, function)))
        return True

    def _binding(self, call: int, function: int) -> int:
        """How the arguments of a call are bound to the parameters of a function, see `ldlm_lint.program.calls`."""
        self.program.ask(("to", call))
        found = {edge & 3 for edge in self.program.ask(("edges", function)) if edge >> 2 == call}
        return found.pop() if len(found) == 1 else UNKNOWN


__all__ = ["TakenBranches"]
