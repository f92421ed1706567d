"""What a condition decides: which value is used, as `torch.where` can on the GPU, or only which statements run.

    if loss.item() > limit:                       # a value: scaled = torch.where(loss > limit, …)
        loss = loss * 0.5
    if int(self.steps.sum().item()) % every:      # only Python can skip a save
        return
    self.save()
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ldlm_lint.code.table import guards_above
from ldlm_lint.program.atoms import HOMES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ldlm_lint.code.table import Event
    from ldlm_lint.program import Program
    from ldlm_lint.program.modules import Module

_TESTED = ("if", "rest")
_GIVES = frozenset({"bind", "write", "return", "yield", "store", "add"})
_LEARNS = frozenset({"backward", "step", "zero_grad"})
_GROWS = frozenset({"append", "extend", "insert", "update", "setdefault", "add"})


class Decided:
    """Answers for the conditions of a program."""

    def __init__(self, program: Program) -> None:
        self.program = program

    def is_only_what_runs(self, module: Module, made_of_it: Iterable[int]) -> bool:
        """Whether the conditions among some expressions only decide which statements run: these end the block, or call
        something, and give no tensor to what follows."""
        tests = set(made_of_it)
        if any(row[0] == "choice" and row[1] in tests for row in module.nodes):
            return False
        arms = {number for number, one in enumerate(module.table.guards) if one.kind in _TESTED and one.test in tests}
        called = [call for call, site in module.table.sites.items() if not arms.isdisjoint(guards_above(module.table.guards, site.guard))]
        if not called and not any(module.table.guards[one].ends for one in arms):
            return False
        given = (event for scope in module.scopes for event in scope.events if event[0] in _GIVES)
        inside = (event for event in given if not arms.isdisjoint(guards_above(module.table.guards, event[3])))
        return bool(arms) and not any(self._gives_tensor(module, one) for one in inside) and not any(self._changes(module, one) for one in called)

    def _gives_tensor(self, module: Module, event: Event) -> bool:
        """Whether a statement may give a tensor to later ones."""
        value = event[5] if event[0] == "add" else event[1]
        return self._may_be_tensor(module, module.nodes[value][3] if event[0] == "store" else value)

    def _may_be_tensor(self, module: Module, number: int) -> bool:
        if module.nodes[module.uncopied(number)][0] in ("none", "const"):
            return False
        value = self.program.ask(module.base | number)
        return not value or bool(value & HOMES)

    def _changes(self, module: Module, call: int) -> bool:
        """Whether a call changes a tensor in place, puts one into a container, or is part of learning."""
        row, site = module.nodes[call], module.table.sites[call]
        name = module.last_name(row[1])
        if name in _LEARNS or (name.endswith("_") and not name.endswith("__")) or (site.loop >= 0 and module.table.loops[site.loop].kind == "comp"):
            return True
        given = (*row[2], *(value for _, value in row[3]))
        return name in _GROWS and any(self._may_be_tensor(module, one) for one in given)


__all__ = ["Decided"]
