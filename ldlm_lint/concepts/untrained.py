"""Models that the code around them does not train: frozen next to it, only evaluated after it, or run without recording
gradients."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ldlm_lint.concepts.evaluation import Evaluation
from ldlm_lint.program.codebase import Concept
from ldlm_lint.program.handles import Call, Expr, Function, Guard
from ldlm_lint.program.spots import Spot
from ldlm_lint.program.value_uses import How
from ldlm_lint.vocabulary.models import SPEAKS_OF_GRADIENTS, STOPPERS, names_evaluation

_PARAMETERS = frozenset({"parameters", "named_parameters"})
_LEADS_ON = frozenset({"phi", "copy", "choice", "bool"})


class Switched(NamedTuple):
    """A model whose gradients a function switches, surely off or not, and the conditions on that; None if only some of its
    parameters are switched."""

    model: Expr
    is_off: bool
    guards: list[Guard] | None


class Untrained(Concept):
    """Answers for calls that make, wrap or run a model."""

    def records_nothing(self, call: Call) -> bool:
        """Whether a decorator, or a context around a call, turns gradients off."""
        if any(one.kind == "with" and _turns_off(one.test) for one in call.guards):
            return True
        return any(_turns_off(one) or _may_turn_off(one) for function in call.function.around for one in function.decorators)

    def is_run_unrecorded(self, call: Call) -> bool:
        """Whether the object created by a call is stored on an object whose class runs it only without recording
        gradients."""
        runs = [run for owner, name in call.attributes for run in self.code.calls_named(name) if run.callee.owner_of_self == owner]
        return bool(runs) and all(map(self.records_nothing, runs))

    def is_only_evaluated(self, call: Call) -> bool:
        """Whether the object created by a call is only used in evaluations: ``evaluate(model, loader)``,
        ``model.eval()``."""
        uses = list(self._uses(call))
        return bool(uses) and all(uses)

    def _uses(self, made: Call) -> Iterator[bool]:
        """Of each use of a value, whether it evaluates; to call it says nothing."""
        held, todo = {made.key}, list[Expr]([made])
        while todo:
            at = todo.pop()
            for use in at.uses():
                by = use.by
                if by is None:
                    if use.how is not How.TESTED:
                        yield False
                elif by.kind in _LEADS_ON:
                    if by.key not in held:
                        held.add(by.key)
                        todo.append(by)
                elif by.kind == "attr":
                    yield by.name == "eval"
                elif not isinstance(by, Call):
                    yield False
                elif by.callee != at:
                    yield self._evaluates(by)

    def _evaluates(self, call: Call) -> bool:
        """Whether a call is of a function that evaluates; by its name alone if it is unknown."""
        if call.targets and all(map(self.code[Evaluation].is_set_by, call.targets)):
            return True
        return names_evaluation(call.called_name)

    def is_frozen_beside(self, call: Call, model: Expr) -> bool:
        """Whether the function around a call switches off the gradients of a model (or of the call's result), whenever
        it makes the call."""
        names = _names(call) | _names(model)
        tests = {one for one in call.guards if one.is_test}
        off = (one for one in self.switches(call.function) if one.is_off and one.guards is not None)
        frozen = (one.model for one in off if tests.issuperset(guard for guard in one.guards or () if guard.is_test))
        return any(one in (call, model) or names & _names(one) for one in frozen)

    def switches(self, function: Function) -> Iterator[Switched]:
        """The models whose gradients a function switches."""
        for call in function.calls:
            if call.called_name == "requires_grad_" and call.receiver is not None:
                is_off = bool(call.positional) and call.positional[0].constant is False
                yield from (Switched(model, is_off, guards) for model, guards in whose(call.receiver, call.spot, call.guards))
        for write in function.writes:
            if write.name == "requires_grad":
                yield from (Switched(model, write.value.constant is False, guards) for model, guards in whose(write.base, write.spot, None))


def whose(target: Expr, spot: Spot, guards: list[Guard] | None) -> Iterator[tuple[Expr, list[Guard] | None]]:
    """The model that a target at a spot is, or whose parameters a loop goes through to it; without conditions if a filter
    chooses among them."""
    element = target.base if target.kind == "part" and target.base is not None else target
    if element.kind != "elem":
        yield target, guards
        return
    made, loop = element.base, element.loop_of_element
    if loop is None or not isinstance(made, Call) or made.receiver is None or made.called_name not in _PARAMETERS:
        return
    is_filtered = any(one.kind in ("if", "rest") and one not in loop.guards for one in spot.guards)
    yield made.receiver, None if is_filtered else loop.guards


def _names(expr: Expr) -> frozenset[str]:
    """The names of a value in the code; for a wrapped value, the wrapper's names."""
    if expr.kind == "attr" and expr.base is not None:
        inner = _names(expr.base)
        return inner if expr.name == "module" else frozenset(f"{one}.{expr.name}" for one in inner)
    if expr.kind in ("free", "param"):
        return frozenset([expr.name])
    behind = expr.ways if expr.kind in ("phi", "copy") else []
    return expr.names.union(*(_names(one) for one in behind if one.key < expr.key))


def _turns_off(expr: Expr) -> bool:
    """Whether a context or decorator surely turns gradients off: ``set_grad_enabled(phase == "train")`` may not."""
    name = _called(expr)
    modes = [one.constant for one in expr.arguments] if isinstance(expr, Call) else []
    if name == "set_grad_enabled":
        return modes == [False]
    return name in STOPPERS and (name != "inference_mode" or modes in ([], [True]))


def _may_turn_off(expr: Expr) -> bool:
    """Whether a decorator of the project or of a package is called like one that turns gradients off."""
    name = _called(expr)
    return name not in ("enable_grad", *STOPPERS) and SPEAKS_OF_GRADIENTS.search(name) is not None


def _called(expr: Expr) -> str:
    """The last name of a decorator or context, whether it is called or not."""
    return expr.called_name if isinstance(expr, Call) else expr.last_name


__all__ = ["Switched", "Untrained", "whose"]
