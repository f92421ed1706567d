"""Models that code runs for their results only, in evaluation mode or in a function that evaluates, while autograd records.

    def validate(model, loader):
        model.eval()
        return [loss_of(model, batch) for batch in loader]   # the model runs in loss_of

A function that computes gradients evaluates in a loop of its own, or until a model trains again. Any other function is an
evaluation as a whole; one without a loop needs a caller that repeats it, and one to which nothing shows the mode a caller that
sets it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from ldlm_lint.concepts.evaluation import Evaluation
from ldlm_lint.concepts.losses import BackwardPasses, Losses
from ldlm_lint.concepts.modes import Modes, mode_set_by, things
from ldlm_lint.concepts.optimizer_steps import OptimizerSteps
from ldlm_lint.concepts.reach import Reach
from ldlm_lint.concepts.recording import Recording
from ldlm_lint.concepts.steps import Steps
from ldlm_lint.concepts.training_loops import TrainingLoops
from ldlm_lint.concepts.untrained import Untrained
from ldlm_lint.program.codebase import Concept
from ldlm_lint.program.handles import Call, Class, Expr, Function, Loop, leading_to
from ldlm_lint.program.walks import reached
from ldlm_lint.vocabulary.models import (
    BUILDS,
    NO_FORWARD,
    differentiates,
    looks_like_model,
    names_evaluation,
    names_training,
    words_of,
)

_RUN_BY = frozenset({"forward", "module", "__call__"})
_PARTS = frozenset({"get_encoder", "get_decoder", "get_base_model"})
"""Methods that give a part of a model to be run by itself."""
_IMPORTED = frozenset({"imp", "impf", "def", "class"})
_PLAIN_BASES = frozenset({"object", "builtins.object", "abc.ABC", "typing.Generic", "typing.Protocol"})


class EvaluatedRun(NamedTuple):
    """A call that runs a model: directly, or in a function of the project; the loops around it that compute no gradients,
    innermost first; the call that ``shows`` the evaluation mode; whether its function ``learns`` elsewhere; and the call of
    its function that makes it an evaluation, if that is needed."""

    call: Call
    model: Expr
    name: str
    is_direct: bool
    loops: list[Loop]
    shows: Call | None
    learns: bool
    caller: Call | None = None

    @property
    def place(self) -> object:
        """What one edit would fix together: the function, or if that computes gradients the loop or block."""
        spot = self.call.spot
        if not self.learns and not spot.function.is_module:
            return spot.function
        return self.loops[-1] if self.loops else (spot.function, spot.guard, spot.loop)


class EvaluatedModels(Concept):
    """The recorded runs of a program, those that one edit would fix together."""

    @cached_property
    def all(self) -> list[list[EvaluatedRun]]:
        """The groups, in the order of the files."""
        places: dict[object, list[EvaluatedRun]] = defaultdict(list)
        for function in self.code.functions:
            for run in self._in(function) if self._may_evaluate(function) else ():
                places[run.place].append(run)
        # A direct call of a model is certain: others only count where there is none.
        groups = ([one for one in runs if one.is_direct and (one.loops or one.learns)] or runs for runs in places.values())
        return [found for runs in groups if (found := [one for one in runs if self.records_for_nothing(one.call, one.model, one.loops)])]

    @staticmethod
    def _may_evaluate(function: Function) -> bool:
        """Whether a function is code of the project that no framework runs."""
        owners = [one for scope in function.enclosing if (one := scope.owner) is not None]
        bases = {base for owner in owners for base in owner.outside_bases if not base.startswith("torch.nn.")}
        return not function.is_class and bases <= _PLAIN_BASES and not any(differentiates(one.name) for one in function.enclosing)

    def _in(self, function: Function) -> Iterator[EvaluatedRun]:
        candidates = [(call, *one) for call in sorted(function.calls, key=lambda one: one.place) if call.arguments for one in self._models(call)]
        learns = bool(candidates) and any(map(self._learns, function.calls))
        for call, model, name, is_direct in candidates:
            if self._may_record(call):
                yield from self._runs(call, model, name, is_direct=is_direct, learns=learns)

    def _may_record(self, call: Call) -> bool:
        return not self.code[Evaluation].is_warm_up(call) and self.code[Recording].is_on_at(call)

    def _models(self, call: Call) -> Iterator[tuple[Expr, str, bool]]:
        """The models that a call with arguments runs, what they are called, and whether it is a call of the model itself."""
        model = _called_model(call.callee)
        name = _name_in(model, call.function)
        if _is_variable(model) and (looks_like_model(name) or self._is_evaluated(model, call.function)):
            owners = model.classes_of
            if (name != "self" or model is not call.callee) and (not owners or any(one.is_module for one in owners)):
                yield model, _written(model, call.function), True
                return
        if call.targets and not BUILDS.search(words_of(call.called_name)) and call.called_name not in NO_FORWARD:
            yield from ((one, _written(one, call.function), False) for one in self._run_inside(call))

    def _is_evaluated(self, model: Expr, function: Function) -> bool:
        evaluating = [one for one in self.code[Modes].set_in(function) if not one.trains]
        wanted = frozenset(things(model)) if evaluating else frozenset()
        return any(not wanted.isdisjoint(one.models) for one in evaluating)

    def _run_inside(self, call: Call) -> Iterator[Expr]:
        """The models that the functions of the project run to which a call goes: its arguments, those of its object, or that itself."""
        given = [one for one in call.arguments if looks_like_model(_name_in(one, call.function))]
        yield from (one for one in given if self._is_run(call, one, frozenset()))
        receiver = call.receiver
        if receiver is not None and receiver.owner_if_self is not None:
            yield from {part.name: part for target in call.targets for part in self._parts_run_by(target)}.values()
        elif receiver is not None and self._is_evaluated(receiver, call.function) and self._run_own_parts(call):
            yield receiver

    def _parts_run_by(self, target: Function) -> list[Expr]:
        """The parts of an object that are called like models and that its method runs, recorded."""
        if target not in self._parts:
            found = (one for one in _calls_of_parts(target) if looks_like_model(one[1].name))
            self._parts[target] = [part for one, part in found if self.code[Recording].is_on_at(one)]
        return self._parts[target]

    @cached_property
    def _parts(self) -> dict[Function, list[Expr]]:
        return {}

    def _is_run(self, call: Call, model: Expr, seen: frozenset[Call]) -> bool:
        """Whether functions that a call goes to run a model that it gives them, recorded, and are no evaluations themselves."""
        for target in call.targets if call not in seen else ():
            for parameter in target.parameters.values():
                if call.given_for(parameter) == model and not self._is_evaluation(target):
                    inner = [one for one in target.calls if one.arguments and self._may_record(one)]
                    if any(self._is_run_by(one, parameter) or self._is_run(one, parameter, seen | {call}) for one in inner):
                        return True
        return False

    def _is_run_by(self, call: Call, model: Expr) -> bool:
        """Whether a call is of a model, of a part of it, or of a method that runs one."""
        called = _called_model(call.callee)
        if called.unnamed == model:
            return True
        if called.kind != "attr" or called.base is None or called.base.unnamed != model:
            return False
        return self._run_own_parts(call) if call.targets else _is_module(called)

    def _run_own_parts(self, call: Call) -> bool:
        """Whether each method that a call may go to runs modules of its object, recorded."""
        parts = [[one for one, part in _calls_of_parts(target) if _is_module(part) or looks_like_model(part.name)] for target in call.targets]
        return bool(parts) and all(any(map(self.code[Recording].is_on_at, found)) for found in parts)

    def _is_evaluation(self, function: Function) -> bool:
        is_repeating = names_evaluation(function.name) and any(call.loops for call in function.calls)
        return is_repeating or any(not one.trains for one in self.code[Modes].set_in(function))

    def _runs(self, call: Call, model: Expr, name: str, *, is_direct: bool, learns: bool) -> Iterator[EvaluatedRun]:
        """The run of a model by a call, if it is an evaluation."""
        shows, function = self.code[Modes].evaluation_before(call, model), call.function
        run = EvaluatedRun(call, model, name, is_direct, call.loops, shows, learns)
        if learns:
            still = self.still_loops(call)
            if shows is not None and call.loops and (still or call.loops[0] in shows.loops) and not self._learns_after(call, still):
                yield run._replace(loops=still)
            return
        last = self.code[Modes].last_before(call, model)
        of_module = function.owner is not None and function.owner.is_module
        if shows is None and (last is None or not last.trains) and not of_module:
            shows = self.code[Modes].evaluation_elsewhere(call, model)
        if shows is not None:
            run = run._replace(shows=shows)
            caller = None if call.loops or function.is_module else self._repeating(run)
            if call.loops or caller is not None:
                yield run._replace(caller=caller)
        elif call.loops and not function.is_module and last is None:
            yield from self._unshown(run, of_module=of_module)

    def _unshown(self, run: EvaluatedRun, *, of_module: bool) -> Iterator[EvaluatedRun]:
        """A run in a loop to whose function nothing shows the mode: what it is called, or a caller, has to."""
        function = run.call.function
        if not of_module and _names_evaluation(function):
            if not self.code[Reach].has(function):
                yield run
        elif run.is_direct and run.model.unnamed.kind == "param" and not of_module:
            caller = next((one for one in function.callers if self._evaluates(one, run.model)), None)
            if caller is not None:
                yield run._replace(caller=caller)

    def _evaluates(self, caller: Call, model: Expr) -> bool:
        """Whether a call outside of any training passes a model that is in evaluation mode there."""
        given = caller.given_for(model.unnamed)
        if given is None or caller.loops or self.code[Modes].evaluation_before(caller, given) is None:
            return False
        return self._is_outside_training(caller) and self.code[Recording].is_on(caller, given)

    def _repeating(self, run: EvaluatedRun) -> Call | None:
        """The recorded call of a function without a loop that repeats its evaluation: any that is repeated if it sets the mode
        and keeps its results, else one in a loop outside of any training."""
        function = run.call.function
        is_whole = run.shows is not None and run.shows.function == function and (not function.returned or _names_evaluation(function))
        for caller in function.callers:
            if is_whole:
                fits = any(isinstance(one, Call) and one.loops for one in reached([caller], _callers_of))
            else:
                fits = bool(caller.loops) and not self._is_evaluation(caller.function) and self._is_outside_training(caller)
            given = caller.given_for(run.model.unnamed) if run.model.unnamed.kind == "param" else None
            if fits and self.code[Recording].is_on(caller, given if given is not None else run.model):
                return caller
        return None

    def _is_outside_training(self, call: Call) -> bool:
        return not any(map(self._learns, call.function.calls)) and self.code[TrainingLoops].around(call) is None

    def _learns(self, call: Call) -> bool:
        """Whether a call computes gradients, or leads to a training; by its name alone if it is unknown."""
        if mode_set_by(call) is not None:
            return False
        if call.called_name == "requires_grad_":
            return not any(one.constant is False for one in call.arguments)
        if self.code[BackwardPasses].lead_to_gradients(call) or self.code[OptimizerSteps].leads_to_one(call) or call.called_name == "zero_grad":
            return True
        return not call.targets and (names_training(call.called_name) or differentiates(call.called_name))

    def still_loops(self, call: Call) -> list[Loop]:
        """The loops around a call, from the innermost on, that compute no gradients."""
        found: list[Loop] = []
        for loop in call.loops:
            if any(map(self._learns, loop.calls)):
                break
            found.append(loop)
        return found

    def _learns_after(self, call: Call, still: list[Loop]) -> bool:
        """Whether a backward pass follows before a model trains again, or nothing shows the end of the evaluation."""
        behind = [one for one in call.function.calls if one.spot.place > call.spot.place and not (still and still[-1] in one.loops)]
        for one in behind:
            if mode_set_by(one):
                return False
            if self.code[BackwardPasses].lead_to_one(one):
                return True
        return not still and not any(one.trains and call.loops[0] in one.call.loops for one in self.code[Modes].set_in(call.function))

    def records_for_nothing(self, call: Call, model: Expr, loops: list[Loop]) -> bool:
        """Whether the graph that a run of a model records is of no use to any code that the program shows."""
        function, steps = call.function, self.code[Steps]
        if not self.code[Recording].is_on(call, model) or self.code[Untrained].trains_nothing(call):
            return False
        if steps.is_whole(function) or any(map(steps.are_loops, loops)):
            return False
        # In a function that learns, only the loops of the evaluation are known to compute nothing.
        inside = [one for one in function.calls if not loops or not set(loops).isdisjoint(one.loops)] if loops or not any(map(self._learns, function.calls)) else []
        if any(map(self.code[BackwardPasses].lead_to_gradients, inside)):
            return False
        losses = self.code[Losses]
        return not losses.is_run_backward(call) and not any(map(losses.is_run_backward, function.callers)) and not self._needs_graph(call, model)

    def _needs_graph(self, call: Call, model: Expr) -> bool:
        """Whether a model may have gradients among its outputs, such as forces: its class does, or if that is not known, one that
        may run in the same program."""
        owners = model.classes_of
        if owners:
            return not self._differentiating.isdisjoint(owners)
        return any(one.module in self.code.modules_near(call.module) for one in self._differentiating)

    @cached_property
    def _differentiating(self) -> frozenset[Class]:
        """The modules whose ``forward`` differentiates what parts of their own compute. A penalty has none: it gets the model."""
        leading = leading_to(call.function for call in self.code.calls_named("grad") if not call.targets)
        owners = {one.owner for one in leading if one.name == "forward" and one.owner is not None and one.owner.is_module}
        return frozenset(owner for owner in owners if any(map(_calls_of_parts, owner.functions)))


def _called_model(callee: Expr) -> Expr:
    """The model that is run: ``model`` of ``model.module.forward``, and of ``model.get_encoder()``."""
    at = callee
    while True:
        if at.kind == "attr" and at.name in _RUN_BY and at.base is not None:
            at = at.base
        elif isinstance(at, Call) and at.called_name in _PARTS and not at.arguments and at.receiver is not None:
            at = at.receiver
        else:
            return at


def _name_in(model: Expr, function: Function) -> str:
    """The last name of what may be a model; empty for what cannot be one."""
    if model.kind in ("attr", "param", "free"):
        return model.name
    return "" if model.kind in ("const", "none", "map", "op", "cmp", "fstr", *_IMPORTED) else model.called_in(function).rpartition(".")[2]


def _written(model: Expr, function: Function) -> str:
    """What a model is called where it runs: the name of a variable, or an attribute as it is written."""
    return model.text if model.kind == "attr" and model.text else model.called_in(function)


def _is_variable(model: Expr) -> bool:
    """Whether what is called is a variable or an attribute of one, and no function, class or module."""
    at = model
    while at.kind in ("attr", "item") and at.base is not None:
        at = at.base.unnamed
    bound = at.bound_outside if at.kind == "free" else [at]
    return bool(bound) and not any(one.plain.kind in _IMPORTED for one in bound) and not model.functions and not model.as_classes


def _calls_of_parts(function: Function) -> list[tuple[Call, Expr]]:
    """The calls in a method of what its object has, such as ``self.net(x)`` and ``self.nets.small(x)``, with that."""
    calls = [(one, _called_model(one.callee)) for one in function.calls if one.arguments]
    return [(one, part) for one, part in calls if _is_part_of_self(part) and not part.functions]


def _is_part_of_self(expr: Expr) -> bool:
    at: Expr | None = expr
    while at is not None and at.kind in ("attr", "item") and at.owner_of_self is None:
        at = at.base
    return at is not None and at.owner_of_self is not None


def _is_module(expr: Expr) -> bool:
    """Whether an expression is known to be a module."""
    return any(name.startswith("torch.nn.") for name in expr.made_by) or any(one.is_module for one in expr.classes_of)


def _callers_of(at: Expr) -> list[Call]:
    return list(at.function.callers) if isinstance(at, Call) and not at.function.is_module else []


def _names_evaluation(function: Function) -> bool:
    """Whether a function is called after an evaluation; ``def test_forward():`` is a unit test."""
    given = [one for one in function.parameter_names if one not in ("self", "cls")]
    return names_evaluation(function.name) and (not function.name.startswith("test_") or bool(given))


__all__ = ["EvaluatedModels", "EvaluatedRun"]
