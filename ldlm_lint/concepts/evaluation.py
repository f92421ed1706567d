"""Code that evaluates instead of training: by the mode that it sets models to, by its name, or because no gradients go
through it; and runs of a model that only warm a device up."""

from __future__ import annotations

from functools import cached_property

from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Call, Class, Expr, Function
from ldlm_lint.program.walks import reached
from ldlm_lint.vocabulary.evaluation import EVALUATION, EVALUATOR, RUNTIME_CALLS
from ldlm_lint.vocabulary.tensors import MADE_UP

_STOPS = frozenset({"no_grad", "inference_mode"})
_PIPELINES = ("transformers", "diffusers")
_AUTOGRAD_FUNCTIONS = frozenset({"torch.autograd.Function", "torch.autograd.function.Function", "torch.autograd.function.InplaceFunction"})
_GRADIENTS = ("backward", "vjp")
"""The methods by which an autograd function gives gradients."""


class Evaluation(Concept):
    """Answers for the functions, classes and calls of a program."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._named: dict[Function, bool] = {}

    def is_set_by(self, function: Function) -> bool:
        """Whether a function sets models to evaluation and not back."""
        return function in self._setting

    @cached_property
    def _setting(self) -> frozenset[Function]:
        back = {call.function for call in self.code.calls_named("train")}
        return frozenset(call.function for call in self.code.calls_named("eval") if _sets_model(call)) - back

    @staticmethod
    def is_forward_only(owner: Class) -> bool:
        """Whether a class is an autograd function that gives no gradients: a pass back through it is an error, so no
        training step runs it."""
        if _AUTOGRAD_FUNCTIONS.isdisjoint(owner.outside_bases):
            return False
        return all(_only_raises(function) for name in _GRADIENTS for function in owner.methods(name))

    def is_named_so(self, function: Function) -> bool:
        """Whether a function, or its enclosing scope, evaluates, predicts or only shows by its class or its name; a known call
        from a step overrides that."""
        if function not in self._named:
            self._named[function] = any(map(self._evaluates, function.enclosing))
        return self._named[function]

    def _evaluates(self, scope: Function) -> bool:
        if scope.is_class:
            return EVALUATOR.search(scope.name) is not None or self._is_pipeline(scope) or self._has(scope, *RUNTIME_CALLS)
        if EVALUATION.search(scope.name) is not None:
            return True
        return scope.name == "forward" and any(one.last_name.removeprefix("()") in _STOPS for one in scope.decorators)

    def _is_pipeline(self, body: Function) -> bool:
        """Whether a class is derived from a pipeline of transformers or diffusers, and has no training of its own."""
        bases = Class(self.code, body.key).outside_bases
        is_one = any(name.endswith("Pipeline") and name.partition(".")[0] in _PIPELINES for name in bases)
        return is_one and not self._has(body, "backward")

    def _has(self, body: Function, *names: str) -> bool:
        """Whether a class calls a function by its name. One that runs an exported model cannot train through it."""
        return any(body in call.function.enclosing for call in self.code.calls_in(body.module, *names))

    @staticmethod
    def is_warm_up(call: Call) -> bool:
        """Whether a call of a model only warms a device up: it gets only tensors that are made up, and its result is not
        used: ``model(torch.zeros(1, 3, 640, 640, device=device))``."""
        given = [one for one in call.arguments if one.kind != "const"]
        return bool(given) and all(map(_is_made_up, given)) and call.is_dropped


def _sets_model(call: Call) -> bool:
    """Whether a call puts a model into evaluation mode. A module may do so with a part of its own, such as a teacher: it still
    trains."""
    if call.receiver is None or call.positional:
        return False
    owner = call.function.owner
    return not (call.receiver.plain.owner_of_self is not None and owner is not None and owner.is_module)


def _only_raises(function: Function) -> bool:
    return not function.returned and any(event.spot.guard is None for event in function.events_of("raise"))


def _is_made_up(expr: Expr) -> bool:
    """Whether each way to an expression begins with a tensor of zeros, ones or random numbers."""
    begins = [one for one in reached([expr], _before) if not _before(one)]
    return bool(begins) and all(isinstance(one, Call) and _makes_up(one) for one in begins)


def _before(expr: Expr) -> list[Expr]:
    if isinstance(expr, Call):
        return [expr.receiver] if expr.receiver is not None and not _makes_up(expr) else []
    if expr.kind == "free":
        return expr.bound_outside
    return expr.operands if expr.kind == "seq" else expr.ways if expr.kind != "bool" else []


def _makes_up(call: Call) -> bool:
    return not MADE_UP.isdisjoint(call.callee.interfaces)


__all__ = ["Evaluation"]
