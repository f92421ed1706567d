"""Runs of a model that only warm a device up: the input is made up, and the result is dropped at once.

    model(torch.zeros(1, 3, 640, 640, device=device))
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.operands import readers
from ldlm_lint.vocabulary.tensors import MADE_UP

if TYPE_CHECKING:
    from ldlm_lint.program.modules import Module


class WarmUps(Concept):
    """Answers for the calls of models."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)


    def is_one(self, call: int) -> bool:
        """Whether a call of a model gets only tensors that are made up, and its result is not used."""
        module = self.program.module_of(call)
        row = module.nodes[call & MASK]
        given = [*row[2], *(value for _, value in row[3])]
        made_up = [one for one in given if self._is_made_up(module, one)]
        constants = [one for one in given if module.nodes[one][0] == "const"]
        return bool(made_up) and len(made_up) + len(constants) == len(given) and self._is_dropped(module, call & MASK)

    def _is_dropped(self, module: Module, number: int) -> bool:
        used = readers(module)
        if any(module.nodes[one][0] != "choice" or one in used for one in used.get(number, ())):
            return False
        names = self.program.names_of(module.base | number)
        kept = any(value == number for scope in module.scopes for value, _ in scope.returns) or any(
            value == number for scope in module.scopes for _, _, value, _ in scope.writes
        )
        return not kept and not any(name.strip("_") for name in names)

    def _is_made_up(self, module: Module, number: int) -> bool:
        """Whether each way to an expression begins with a tensor of zeros, ones or random numbers."""
        todo, seen, found = [number], set[int](), False
        while todo:
            one = todo.pop()
            if one in seen:
                continue
            seen.add(one)
            row = module.nodes[one]
            if row[0] in ("copy", "phi", "choice"):
                todo += [row[1]] if row[0] == "copy" else row[1] if row[0] == "phi" else row[2:4]
            elif row[0] == "seq":
                todo += row[2]
            elif row[0] == "free":
                bound = list(self.ask.bound_to(module, row))
                todo += [key & MASK for key in bound]
                if not bound:
                    return False
            elif row[0] != "call":
                return False
            elif not self.ask.names_of(self.program.ask(module.base | row[1])).isdisjoint(MADE_UP):
                found = True
            elif module.nodes[row[1]][0] == "attr":
                todo.append(module.nodes[row[1]][1])
            else:
                return False
        return found
