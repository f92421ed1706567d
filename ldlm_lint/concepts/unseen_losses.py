"""Losses that no visible call computes: modules of a library, or of a training whose configuration names them. A step
calls them.

    class Objective(nn.Module):
        def forward(self, logits, target):
            return F.cross_entropy(logits, target)  # who trains with it calls it in each step
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from ldlm_lint.program import Program
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.modules import Module
from ldlm_lint.vocabulary.losses import CLASS_WORDS, ENDS, FUNCTIONS, OPERATIONS

_METHODS = ("forward", "__call__")
_STOPS = frozenset({"no_grad", "inference_mode"})


class UnseenLosses:
    """The losses of a program that no ``reached`` code calls."""

    def __init__(self, program: Program, reached: Collection[int]) -> None:
        self.program = program
        self.reached = reached

    def functions(self) -> Iterator[int]:
        """The methods that compute such a loss."""
        for owner in [one for classes in self.program.classes.values() for one in classes]:
            module = self.program.module_of(owner)
            for name in _METHODS:
                for number in module.scopes[owner & MASK].bindings.get(name, ()):
                    row = module.nodes[number]
                    if row[0] == "def" and self._is_loss(module, owner, row[1]):
                        yield module.base | row[1]

    def _is_loss(self, module: Module, owner: int, function: int) -> bool:
        key = module.base | function
        if key in self.reached or self._records_nothing(module, function):
            return False
        kinds = (self._is_called_a_loss, self._has_gradients, self._computes_loss)
        if not any(is_one(module, owner, function) for is_one in kinds):
            return False
        return (
            not self._is_called(key) if self._has_gradients(module, owner, function) else not self.program.callers(key)
        )

    def _is_called(self, function: int) -> bool:
        """Whether calls lead to an operation from a step or from a module's own code: its users call the function that
        applies it, and nothing in a library does."""
        todo, seen = [function], {function}
        while todo:
            for one in {self.program.function_of(caller.call) for caller in self.program.callers(todo.pop())} - seen:
                if one in self.reached or one & MASK == 0:
                    return True
                seen.add(one)
                todo.append(one)
        return False

    @staticmethod
    def _records_nothing(module: Module, function: int) -> bool:
        """Whether a function is decorated to record no gradients."""
        decorators = module.scopes[function].decorators
        return any(module.last_name(one).removeprefix("()") in _STOPS for one in decorators)

    @staticmethod
    def _is_called_a_loss(module: Module, owner: int, _: int) -> bool:
        return any(word in module.scopes[owner & MASK].name for word in CLASS_WORDS)

    def _has_gradients(self, module: Module, owner: int, _: int) -> bool:
        """Whether a class is an operation with a gradient of its own, which only a training needs."""
        return "backward" in module.scopes[owner & MASK].bindings and any(one in OPERATIONS for one in self.program.outside_of(owner))

    def _computes_loss(self, module: Module, owner: int, function: int) -> bool:
        """Whether a module calls a loss of torch in its ``forward``."""
        scope = module.scopes[function]
        if scope.name != "forward" or not self.program.is_module(owner):
            return False
        calls = (one for one in scope.calls if module.last_name(module.nodes[one][1]).endswith(ENDS))
        return any(self._is_of_torch(module, one) for one in calls)

    def _is_of_torch(self, module: Module, call: int) -> bool:
        value = self.program.ask(module.base | module.nodes[call][1])
        return any(fields[1].startswith(FUNCTIONS) for fields in self.program.atoms.kinds(value, "x"))


__all__ = ["UnseenLosses"]
