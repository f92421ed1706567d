"""Functions that evaluate, predict or only show, by their class or their name.

This applies only if no step is known to call them; a known call from a step overrides the name.
"""

from __future__ import annotations

from ldlm_lint.program import Program
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.modules import Module
from ldlm_lint.python.evaluation_names import EVALUATION, EVALUATOR, RUNTIME_CALLS

_STOPS = frozenset({"no_grad", "inference_mode"})
_PIPELINES = ("transformers", "diffusers")


class Evaluating:
    """Answers for the functions of a program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._known: dict[int, bool] = {}

    def is_inside(self, function: int) -> bool:
        """Whether a function, or its enclosing scope, evaluates."""
        if function not in self._known:
            module, scope = self.program.module_of(function), function & MASK
            found = False
            while scope > 0 and not found:
                found = self._evaluates(module, scope)
                scope = module.scopes[scope].parent
            self._known[function] = found
        return self._known[function]

    def _evaluates(self, module: Module, scope: int) -> bool:
        one = module.scopes[scope]
        if one.kind == "class":
            return EVALUATOR.search(one.name) is not None or self._is_pipeline(module, scope) or self._opens_a_runtime(module, scope)
        if EVALUATION.search(one.name) is not None:
            return True
        return one.name == "forward" and any(module.last_name(number).removeprefix("()") in _STOPS for number in one.decorators)

    def _is_pipeline(self, module: Module, scope: int) -> bool:
        """Whether a class is derived from a pipeline of transformers or diffusers, and has no training of its own."""
        outside = self.program.outside_of(module.base | scope)
        if not any(name.endswith("Pipeline") and name.partition(".")[0] in _PIPELINES for name in outside):
            return False
        return not any(self._stands_in(module, module.table.sites[call].scope, scope) for call in module.table.named.get("backward", ()))

    def _opens_a_runtime(self, module: Module, scope: int) -> bool:
        """Whether a class runs a model that was exported: training through it is impossible."""
        calls = (call for name in RUNTIME_CALLS for call in module.table.named.get(name, ()))
        return any(self._stands_in(module, module.table.sites[call].scope, scope) for call in calls)

    @staticmethod
    def _stands_in(module: Module, scope: int, outer: int) -> bool:
        while scope > 0:
            if scope == outer:
                return True
            scope = module.scopes[scope].parent
        return False


__all__ = ["Evaluating"]
