"""Whether autograd surely records what a call runs, on at least one way that leads to it: no context, decorator, statement or
unknown caller may have turned it off, and the model is not frozen."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from ldlm_lint.concepts.untrained import Untrained
from ldlm_lint.program.codebase import Concept
from ldlm_lint.program.handles import Call, Class, Expr, Function, leading_to
from ldlm_lint.program.modules import Module
from ldlm_lint.program.walks import Through, reached, steps_back
from ldlm_lint.vocabulary.frozen_texts import is_frozen
from ldlm_lint.vocabulary.models import SPEAKS_OF_GRADIENTS, STOPPERS

_LEADS_ON = Through.NAMES | Through.CHOICES | Through.OUTSIDE | Through.ATTRIBUTES


class Recording(Concept):
    """Answers for runs of models."""

    def is_on(self, run: Call, model: Expr) -> bool:
        """Whether a way leads to a run of a model on which nothing may keep it from being recorded."""
        todo: list[tuple[Call, Expr | None]] = [(run, model)]
        seen = {run}
        while todo:
            call, given = todo.pop()
            if not self.is_on_at(call) or (given is not None and self.is_frozen(call, given)):
                continue
            function = call.function
            above = [] if function.is_module else [one for one in function.callers if one.function != function]
            if not above and not self._is_off_by_name(function):
                return True
            for one in above:
                if one not in seen:
                    seen.add(one)
                    passed = given.unnamed if given is not None and given.unnamed.kind == "param" else None
                    todo.append((one, one.given_for(passed) if passed is not None else None))
        return False

    def is_on_at(self, call: Call) -> bool:
        """Whether neither the code around a call nor an unknown caller of its function may turn recording off."""
        function = call.function
        if any(guard.kind == "with" and not self._goes_on(guard.test) for guard in call.guards):
            return False
        if not self._switching.isdisjoint((function, Function(self.code, function.module.base))):
            return False
        if any(self._may_stop(one) for scope in function.enclosing for one in scope.decorators):
            return False
        return function.is_module or not (function.has_unknown_callers or function.is_hook or function in self._handed or function.name == "<lambda>")

    def is_frozen(self, call: Call, model: Expr) -> bool:
        """Whether the parameters of a model are frozen where a call gets it: by code around, or by its own constructor."""
        name = model.called_in(call.function)
        if is_frozen(name, self.code.source(call.module).text) or self.code[Untrained].is_frozen_beside(call, model):
            return True
        classes = model.classes_of
        return bool(classes) and all(map(self._freezes_itself, classes))

    def _freezes_itself(self, owner: Class) -> bool:
        """Whether the constructor of a class freezes its object, in any case and after it has made all parts."""
        for made in owner.own_methods_named("__init__"):
            off = [one for one in self.code[Untrained].switches(made) if one.is_off and one.guards == [] and one.model.owner_if_self is not None]
            last = max((write.spot.place for write in made.writes if write.base.owner_if_self is not None), default=0)
            if off and any(call.place > last for call in made.calls if call.called_name in ("requires_grad_", "parameters", "named_parameters")):
                return True
        return False

    def _goes_on(self, context: Expr) -> bool:
        """Whether a context manager is known, and turns nothing off."""
        ways = [one for one in reached([context], lambda at: steps_back(at, _LEADS_ON)) if not any(True for _ in steps_back(one, _LEADS_ON))]
        return bool(ways) and all(isinstance(one, Call) and self._is_known(one) and not self._may_stop(one) for one in ways)

    @staticmethod
    def _is_known(call: Call) -> bool:
        of = call.receiver
        is_known = bool(call.callee.interfaces or call.targets or call.callee.as_classes) or (of is not None and bool(of.made_by or of.classes_of))
        return is_known or (call.callee.kind == "free" and call.called_name == "open")

    def _may_stop(self, expr: Expr) -> bool:
        """Whether a context or a decorator may turn recording off, by what it is, does or is called."""
        callee = expr.callee if isinstance(expr, Call) else expr
        names = {callee.last_name.removeprefix("()"), *(name.rpartition(".")[2] for name in callee.interfaces)}
        if names & STOPPERS:
            return not (isinstance(expr, Call) and _turns_on(expr))
        used = [*callee.targets_if_called, *(function for owner in callee.as_classes for function in owner.functions)]
        return not self._stopping.isdisjoint(used) or any(SPEAKS_OF_GRADIENTS.search(name) and name != "enable_grad" for name in names)

    @cached_property
    def _stopping(self) -> frozenset[Function]:
        """The functions that turn recording off, or lead to one that does, with those around them."""
        stops = [call for call in self.code.calls_named(*STOPPERS) if not _turns_on(call)]
        return leading_to(function for call in stops for function in (call.function, *call.function.around))

    @cached_property
    def _switching(self) -> frozenset[Function]:
        """The functions with a statement that turns it off, or that enter such a context in an unusual way."""
        stops = [call for call in self.code.calls_named(*STOPPERS) if not _turns_on(call)]
        usual = {one for module in {call.module for call in stops} for one in self._entered_in(module)}
        return frozenset(call.function for call in stops if call not in usual)

    def _entered_in(self, module: Module) -> Iterator[Expr]:
        """What a file decorates with, or enters by ``with``."""
        yield from (guard.test for guard in self.code.guards_in(module) if guard.kind == "with")
        yield from (one for function in self.code.functions_in(module) for one in function.decorators)

    @cached_property
    def _handed(self) -> frozenset[Function]:
        """The functions that are arguments of calls: what gets them may call them."""
        given = (one for call in self.code.all_calls for one in call.arguments if one.kind in ("attr", "free", "def", "impf"))
        return frozenset(function for one in given for function in one.functions)

    def _is_off_by_name(self, function: Function) -> bool:
        """Whether a method without known callers is called by its name of an object of unknown type, or that code is, on a
        way on which something may turn recording off."""
        ways = reached(self._by_name(function), lambda at: self._above(at.function))
        return any(isinstance(one, Call) and not self.is_on_at(one) for one in ways)

    def _above(self, function: Function) -> list[Call]:
        return [] if function.is_module else list(function.callers) or self._by_name(function)

    def _by_name(self, function: Function) -> list[Call]:
        if function.owner is None or function.is_special:
            return []
        return [one for one in self.code.calls_named(function.name) if one.receiver is not None and not one.targets]


def _turns_on(call: Call) -> bool:
    """``set_grad_enabled(True)`` and ``inference_mode(False)``."""
    wanted = call.called_name == "set_grad_enabled"
    return any(one.constant is wanted for one in call.arguments)


__all__ = ["Recording"]
