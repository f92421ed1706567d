"""Models, and parts of them, that the code around does not train: frozen next to it, only evaluated after it, or run without recording
gradients."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from ldlm_lint.concepts.evaluation import Evaluation
from ldlm_lint.concepts.left_off import LeftOff
from ldlm_lint.program.codebase import Concept
from ldlm_lint.program.handles import Call, Class, Expr, Function, Guard
from ldlm_lint.program.spots import Spot
from ldlm_lint.program.value_uses import How
from ldlm_lint.program.walks import Through, origins
from ldlm_lint.vocabulary.models import SPEAKS_OF_GRADIENTS, STOPPERS, names_evaluation
from ldlm_lint.vocabulary.modules import FROZEN_WHEN_MADE, RETURN_THEMSELVES

_PARAMETERS = frozenset({"parameters", "named_parameters"})
_HELD = Through.NAMES | Through.CHOICES | Through.PARAMETERS | Through.ATTRIBUTES | Through.OUTSIDE | Through.RETURNS
"""Links to where the same object comes from."""
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
        return self.records_nothing_at(call.spot)

    @staticmethod
    def records_nothing_at(spot: Spot) -> bool:
        """The same for any place."""
        if any(one.kind == "with" and _turns_off(one.test) for one in spot.guards):
            return True
        return any(_turns_off(one) or _may_turn_off(one) for function in spot.function.around for one in function.decorators)

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

    def trains_nothing(self, call: Call) -> bool:
        """Whether a call runs a frozen part of an object, ``self.tower(images)``, or records no gradients."""
        if self.records_nothing(call):
            return True
        at = call.callee.plain
        while at.kind in ("attr", "item") and at.base is not None:
            if any(self._is_frozen_in(owner, at.name) for owner in _owners(at)):
                return True
            at = at.base.plain
        return False

    def _is_frozen_in(self, owner: Class, name: str) -> bool:
        """Whether what the objects of a class have under a name is frozen, and stays so."""
        family = {*owner.bases, *owner.subclasses}
        written = {one for each in family for one in each.written(name) if one.plain.constant is not None}
        if len(written) != 1:
            return False
        way = set(origins(next(iter(written)), _HELD, _same_object))
        freezes = any(map(_is_made_frozen, way)) or any(one.is_off and may_run and (one.model in way or _is_part(one.model, family, name)) for one, may_run in self._all_switches)
        return freezes and not any(not one.is_off and _is_inside(one.model, family, name, way) for one, _ in self._all_switches)

    @cached_property
    def _all_switches(self) -> list[tuple[Switched, bool]]:
        """All switches, and where a model is built also whether their conditions may hold: what a user chooses may."""
        found = ((function, one) for function in self.code.functions for one in self.switches(function))
        return [(one, one.guards is not None and self.code[LeftOff].may_hold(one.guards) and self._builds(function)) for function, one in found]

    def _builds(self, function: Function) -> bool:
        """Whether a function builds an object or a program, or a constructor calls it."""
        if function.owner is None or function.name == "__init__":
            return True
        return any(call.function.name == "__init__" and not self.code[LeftOff].is_left_off(call) for call in function.callers)

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


def _owners(attribute: Expr) -> list[Class]:
    """The classes whose objects an attribute is read from."""
    own = attribute.owner_of_self
    return [own] if own is not None else attribute.base.classes_of if attribute.kind == "attr" and attribute.base is not None else []


def _is_part(model: Expr, family: set[Class], name: str) -> bool:
    """Whether an expression is the attribute of this name of an object of these classes."""
    model = model.plain
    return model.kind == "attr" and model.name == name and not family.isdisjoint(_owners(model))


def _is_made_frozen(expr: Expr) -> bool:
    """``nn.Embedding.from_pretrained(weights)``."""
    if not isinstance(expr, Call) or expr.callee.outside_names.isdisjoint(FROZEN_WHEN_MADE):
        return False
    freezes = expr.argument("freeze", 1)
    return freezes.is_absent or (freezes.is_given and all(one.is_just(True) for one in freezes.values))


def _is_inside(model: Expr, family: set[Class], name: str, way: set[Expr]) -> bool:
    """Whether an expression is the attribute, or a part of it."""
    at = model.unnamed
    while at not in way and not _is_part(at, family, name):
        if at.kind not in ("attr", "item") or at.base is None:
            return False
        at = at.base.unnamed
    return True


def _same_object(expr: Expr) -> list[Expr]:
    """``build()`` of ``build().eval()``, and what a function returns in the place that is unpacked: ``tower, norm = build()``."""
    if isinstance(expr, Call) and expr.called_name in RETURN_THEMSELVES and expr.receiver is not None:
        return [expr.receiver]
    place = expr.part if expr.part is not None else -1
    made = expr.base.plain if expr.base is not None and place >= 0 else None
    given = [one.plain for one in made.results] if isinstance(made, Call) else [made] if made is not None else []
    return [one.operands[place] for one in given if one.kind == "seq" and place < len(one.operands)]


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
