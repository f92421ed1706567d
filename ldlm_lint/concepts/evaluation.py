"""Code that evaluates instead of training: by the mode that it sets models to, by its name, or because no gradients go
through it."""

from __future__ import annotations

from functools import cached_property

from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Call, Class, Function
from ldlm_lint.program.modules import Module
from ldlm_lint.vocabulary.evaluation import EVALUATION, EVALUATOR, RUNTIME_CALLS

_STOPS = frozenset({"no_grad", "inference_mode"})
_PIPELINES = ("transformers", "diffusers")
_AUTOGRAD_FUNCTIONS = frozenset({"torch.autograd.Function", "torch.autograd.function.Function", "torch.autograd.function.InplaceFunction"})
_GRADIENTS = ("backward", "vjp")
"""The methods by which an autograd function gives gradients."""


class Evaluation(Concept):
    """Answers for the functions and classes of a program."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._named: dict[Function, bool] = {}

    def is_set_by(self, function: Function) -> bool:
        """Whether a function sets models to evaluation and not back."""
        return function in self._setting

    @cached_property
    def _setting(self) -> frozenset[Function]:
        calls = self.program.calls
        setting = (Call(self.code, call) for call in calls.get("eval", ()))
        back = {Call(self.code, call).function for call in calls.get("train", ())}
        return frozenset(call.function for call in setting if self._sets_model(call)) - back

    def _sets_model(self, call: Call) -> bool:
        return call.receiver is not None and not call.row[2] and not self._freezes_part(call)

    def _freezes_part(self, call: Call) -> bool:
        """Whether a module sets a part of its own to evaluation, such as a teacher: it still trains."""
        module, owner = call.module, call.function.owner
        row = module.plain(call.callee.row[1])
        is_own = row[0] == "attr" and self.program.class_of_self(module, row[1]) is not None
        return is_own and owner is not None and owner.is_module

    def is_forward_only(self, owner: Class) -> bool:
        """Whether a class is an autograd function that gives no gradients: a pass back through it is an error, so no
        training step runs it."""
        if _AUTOGRAD_FUNCTIONS.isdisjoint(owner.outside_bases):
            return False
        methods = [function for name in _GRADIENTS for function in self.program.methods(owner.key, name)]
        return all(map(self._only_raises, methods))

    def _only_raises(self, function: int) -> bool:
        scope = self.program.module_of(function).scopes[function & MASK]
        return not scope.returns and any(kind == "raise" and guard < 0 for kind, _, _, guard, _, _ in scope.events)

    def is_named_so(self, function: Function) -> bool:
        """Whether a function, or its enclosing scope, evaluates, predicts or only shows by its class or its name; a known call
        from a step overrides that."""
        if function not in self._named:
            module, scope = function.module, function.key & MASK
            found = False
            while scope > 0 and not found:
                found = self._evaluates(module, scope)
                scope = module.scopes[scope].parent
            self._named[function] = found
        return self._named[function]

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
