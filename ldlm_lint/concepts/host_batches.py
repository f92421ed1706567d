"""Loops that put each batch on the CPU before their model sees it: such a training computes on the host."""

from __future__ import annotations

from ldlm_lint.concepts.steps import Steps
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.modules import Module

_MOVES = ("to", "cuda", "npu", "xpu")


class HostBatches(Concept):
    """Answers for the functions of a program."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._steps = code[Steps]
        self._known: dict[int, bool] = {}

    def trains_on(self, function: int) -> bool:
        """Whether a function trains on batches and puts every part of them on the CPU."""
        if function not in self._known:
            module = self.program.module_of(function)
            scope = function & MASK
            self._known[function] = self._puts_on_host(module, scope) and not self._moves(module, scope)
        return self._known[function]

    def _puts_on_host(self, module: Module, scope: int) -> bool:
        """``batch[key] = value.to("cpu")``: an element is moved to the host and put back."""
        stored = (event[1] for event in module.scopes[scope].events if event[0] == "store")
        rows = (module.nodes[one] for one in stored)
        return any(row[0] == "upd" and self._is_batch(module, row[1]) and self._is_moved_to_host(module, row[3]) for row in rows)

    def _is_batch(self, module: Module, number: int) -> bool:
        """Whether a container is the batch of a step's loop."""
        todo, seen = [number], {number}
        while todo:
            row = module.nodes[todo.pop()]
            if row[0] == "elem" and module.base | row[1] in self._steps.repeated:
                return True
            held = row[1] if row[0] == "phi" else (row[1],) if row[0] in ("copy", "upd", "part") else ()
            todo += [one for one in held if one not in seen]
            seen.update(held)
        return False

    def _is_moved_to_host(self, module: Module, number: int) -> bool:
        row = module.plain(number)
        name = module.last_name(row[1]) if row[0] == "call" else ""
        return name == "cpu" or (name == "to" and bool(row[2]) and self.program.is_cpu(self.program.ask(module.base | row[2][0])))

    def _moves(self, module: Module, scope: int) -> bool:
        """Whether something is moved to the device in the loops of a function."""
        calls = [one for name in _MOVES for one in module.table.named.get(name, ())]
        inside = (one for one in calls if module.table.sites[one].scope == scope and module.table.sites[one].loop >= 0)
        return any(not self._is_moved_to_host(module, one) and module.nodes[module.nodes[one][1]][0] == "attr" for one in inside)


__all__ = ["HostBatches"]
