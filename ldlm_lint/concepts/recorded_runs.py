"""Which classes of models run while autograd records: a teacher, or an encoder whose features are only targets, does not.

The runs of a model are the calls of its object and of the methods that other code calls on it, also through lists,
dictionaries and attributes. A run is recorded unless a context around it, around each call of its function, or around
each run of the model that it is a part of turns gradients off. A frozen model that gets only data records nothing, either.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import cached_property

from ldlm_lint.concepts.untrained import Untrained
from ldlm_lint.program.atoms import FIRST, Value
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Call, Class, Expr
from ldlm_lint.vocabulary.modules import RETURN_THEMSELVES

_OPTIMIZERS = "torch.optim."
_TRAINER = "Trainer"
"""How the classes are called that run models out of sight: of transformers, trl, ignite, composer, Lightning."""
_LISTS = ("parameters", "named_parameters")
_HOLDS = frozenset({"free", "param", "attr", "item", "phi", "copy", "call", "part", "elem", "choice"})
"""Expressions that may be a model; most calls are of imported functions."""
_CARRIES = frozenset({"attr", "item", "op", "un", "seq", "map", "choice", "phi", "copy", "star", "slice", "bool", "part"})
"""Expressions that carry a gradient if one of their parts does."""


class RecordedRuns(Concept):
    """Answers for classes of a program that are modules."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._untrained = code[Untrained]
        self._recorded: dict[Call, bool] = {}

    def is_never_recorded(self, owner: Class) -> bool:
        """Whether runs of a class's models are known, none of them is recorded, and no optimizer has their
        parameters."""
        runs = self.runs(owner)
        if not runs or self._may_be_optimized(owner):
            return False
        return not any(map(self.is_recorded, runs)) or (self._is_frozen(owner) and all(map(self._gets_data, runs)))

    def is_wrapper_never_recorded(self, wrapper: Call, may_be: Callable[[Expr], bool]) -> bool:
        """Whether runs of the model that a call wraps are known, and none of them is recorded.

        ``may_be`` tells whether an expression may be the wrapper: two models of one class have two wrappers.
        """
        runs = [one for one in self._runs_of_value(wrapper) if may_be(one.callee)]
        return bool(runs) and not any(map(self.is_recorded, runs))

    def _runs_of_value(self, made: Call) -> list[Call]:
        """The calls, in the programs of a call's module, of objects that are like the one it makes."""
        objects = frozenset(one for one in made.value if one >= FIRST)
        like = (calls for value, calls in self._calls_by_value.items() if not objects.isdisjoint(value))
        return [one for calls in like for one in calls if made.may_run_with(one)]

    @cached_property
    def _calls_by_value(self) -> dict[Value, list[Call]]:
        """The calls of what may be a model, by the value that is called: there are few different values."""
        found: dict[Value, list[Call]] = defaultdict(list)
        for call in self.code.all_calls:
            if call.callee.kind in _HOLDS:
                found[call.callee.value].append(call)
        return found

    def runs(self, owner: Class) -> list[Call]:
        """The known calls of a class's models and of their methods, from outside of the class."""
        family = {*owner.bases, *owner.subclasses}
        calls = {call for one in owner.functions if one.name != "__init__" for call in one.callers}
        return sorted((one for one in calls if one.function.owner not in family), key=lambda one: one.key)

    def is_recorded(self, call: Call) -> bool:
        """Whether autograd records what a call does, in at least one way that leads to it."""
        if call not in self._recorded:
            self._recorded[call] = self._is_reached_recorded(call)
        return self._recorded[call]

    def _is_reached_recorded(self, call: Call) -> bool:
        todo, seen = [call], {call}
        while todo:
            one = todo.pop()
            if self._untrained.records_nothing(one):
                continue
            above = () if one.function.is_module else one.function.callers
            if not above:
                return True
            todo += [other for other in above if other not in seen]
            seen.update(above)
        return False

    def _is_frozen(self, owner: Class) -> bool:
        """Whether each construction of a class's models freezes them right beside."""
        made = self.constructions(owner)
        return bool(made) and all(self._untrained.is_frozen_beside(one, _outermost(one)) for one in made)

    def constructions(self, owner: Class) -> list[Call]:
        """The calls that may make objects of a class."""
        return self._constructions.get(owner, [])

    @cached_property
    def _constructions(self) -> dict[Class, list[Call]]:
        """The calls that may make objects of each class."""
        found: dict[Class, list[Call]] = defaultdict(list)
        for call in self.code.all_calls:
            for owner in call.callee.as_classes:
                found[owner].append(call)
        return dict(found)

    def _gets_data(self, run: Call) -> bool:
        """Whether no gradient can flow through the arguments of a call: they are made of what loops take, without models."""
        todo, seen = list(run.arguments), set[Expr]()
        while todo:
            one = todo.pop()
            if one not in seen and one.kind not in ("const", "elem", "none"):
                seen.add(one)
                made_of = _made_of(one)
                if not made_of:
                    return False
                todo += made_of
        return True

    def _may_be_optimized(self, owner: Class) -> bool:
        """Whether an optimizer gets the parameters of such a model itself, or of one that may be it."""
        return not self._optimized.isdisjoint((*owner.bases, *owner.subclasses))

    @cached_property
    def _optimized(self) -> set[Class]:
        """The classes whose ``parameters()`` are an argument of an optimizer, or whose objects a framework trains."""
        found = set(self._given_to_trainers())
        for call in self.code.calls_named(*_LISTS):
            if call.receiver is not None and self.goes_to_optimizer(call):
                found.update(call.receiver.classes_of)
        return found

    def _given_to_trainers(self) -> Iterable[Class]:
        """The classes of the models that a ``Trainer`` of a framework gets, also one that a class of the project extends."""
        for call in self.code.calls_ending(_TRAINER):
            if call.callee.interfaces:
                yield from (owner for one in call.arguments for owner in one.classes_of)

    @staticmethod
    def goes_to_optimizer(parameters: Call) -> bool:
        """Whether an optimizer is created in the statement of a call."""
        around = (one for one in parameters.function.calls if one.place <= parameters.place < one.end)
        return any(name.startswith(_OPTIMIZERS) for one in around for name in one.callee.interfaces)


def _made_of(expr: Expr) -> list[Expr]:
    """What a gradient can come from to an expression that is not the output of a model; empty if that is unknown."""
    if expr.kind == "param":
        return expr.given
    if not isinstance(expr, Call):
        return expr.operands if expr.kind in _CARRIES else []
    if expr.receiver is not None and not expr.targets and not expr.receiver.classes_of:
        return [expr.receiver, *expr.arguments]
    return expr.arguments if all(one.startswith("torch.") for one in expr.callee.outside_names or ("",)) else []


def _outermost(made: Expr) -> Expr:
    """What the methods give that return their object: ``Encoder().cuda()`` of ``Encoder()``."""
    for user in () if made.names else made.users:
        for call in user.users if user.name in RETURN_THEMSELVES else ():
            return _outermost(call)
    return made


__all__ = ["RecordedRuns"]
