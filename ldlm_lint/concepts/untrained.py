"""Models that the code around them does not train: frozen next to it, only evaluated after it, or run without recording
gradients."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from ldlm_lint.concepts.evaluation import Evaluation
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.codebase import Concept
from ldlm_lint.program.handles import Call
from ldlm_lint.python.model_names import SPEAKS_OF_GRADIENTS, STOPPERS, names_evaluation

if TYPE_CHECKING:
    from ldlm_lint.program.modules import Module

_PARAMETERS = frozenset({"parameters", "named_parameters"})
_FALSE = ("const", False)
_LEADS_ON = frozenset({"phi", "copy", "choice", "bool"})
_MOST = 200
"""Rows that are looked at for what happens to one value."""


class Untrained(Concept):
    """Answers for calls that make or wrap a model."""

    def records_nothing(self, call: int) -> bool:
        """Whether a decorator, or a context around a call, turns gradients off."""
        module = self.program.module_of(call)
        site = module.table.sites[call & MASK]
        guard = site.guard
        while guard >= 0:
            one = module.table.guards[guard]
            if one.kind == "with" and _turns_off(module, one.test):
                return True
            guard = one.parent
        at = site.scope
        while at > 0:
            if any(_turns_off(module, one) or _may_turn_off(module, one) for one in module.scopes[at].decorators):
                return True
            at = module.scopes[at].parent
        return False

    def is_run_unrecorded(self, call: int) -> bool:
        """Whether the object created by a call is stored on an object whose class runs it only without recording
        gradients."""
        places = [place for place, values in self.program.own_writes.items() if call in values]
        runs = [one for owner, name in places for one in self.program.calls.get(name, ()) if self._is_of(one, owner)]
        return bool(runs) and all(map(self.records_nothing, runs))

    def _is_of(self, call: int, owner: int) -> bool:
        """Whether a call is of an attribute that an object of a class has itself."""
        module = self.program.module_of(call)
        function = module.nodes[module.nodes[call & MASK][1]]
        return function[0] == "attr" and self.program.class_of_self(module, function[1]) == owner

    def is_only_evaluated(self, call: int) -> bool:
        """Whether the object created by a call is only used in evaluations: ``evaluate(model, loader)``,
        ``model.eval()``."""
        module = self.program.module_of(call)
        uses = list(self._uses(module, call & MASK))
        return bool(uses) and all(uses)

    def _uses(self, module: Module, made: int) -> Iterator[bool]:
        """Of each use of a value, whether it evaluates."""
        held, todo = {made}, [made]
        read_by = readers(module)
        while todo:
            one = todo.pop()
            for number in read_by.get(one, ()):
                row = module.nodes[number]
                if row[0] in _LEADS_ON and number not in held and len(held) < _MOST:
                    held.add(number)
                    todo.append(number)
                elif row[0] == "attr":
                    yield row[2] == "eval"
                elif row[0] == "call":
                    yield self._evaluates(module, number)
                elif row[0] not in _LEADS_ON:
                    yield False
        names = self.program.names_of(module.base | made)
        yield from (False for row in module.nodes if row[0] == "free" and row[2] in names)
        yield from (False for scope in module.scopes for value, _ in scope.returns if value in held)
        yield from (False for scope in module.scopes for _, _, value, _ in scope.writes if value in held)

    def _evaluates(self, module: Module, call: int) -> bool:
        """Whether a call is of a function that evaluates; by its name alone if it is unknown."""
        targets = Call(self.code, module.base | call).targets
        if targets and all(map(self.code[Evaluation].is_set_by, targets)):
            return True
        return names_evaluation(module.last_name(module.nodes[call][1]))

    def is_frozen_beside(self, call: int, model: int) -> bool:
        """Whether the function around a call switches off the gradients of a model (or of the call's result), whenever
        it makes the call."""
        module = self.program.module_of(call)
        site = module.table.sites[call & MASK]
        names = self._names(module, call & MASK) | self._names(module, model & MASK)
        around = set(_branches(module, site.guard))
        frozen = [(target, guard) for target, guard in self._frozen(module, site.scope) if around.issuperset(_branches(module, guard))]
        return any(target in (call & MASK, model & MASK) or names & self._names(module, target) for target, _ in frozen)

    @staticmethod
    def _frozen(module: Module, scope: int) -> Iterator[tuple[int, int]]:
        """The objects whose gradients a function switches off, and the guard around that."""
        return ((one.target, one.guard) for one in switched(module, scope) if one.is_off and one.guard is not None)

    def _names(self, module: Module, number: int) -> frozenset[str]:
        """The names of a value in the code; for a wrapped value, the wrapper's names."""
        row = module.nodes[number]
        if row[0] == "attr":
            inner = self._names(module, row[1])
            return inner if row[2] == "module" else frozenset(f"{one}.{row[2]}" for one in inner)
        if row[0] in ("free", "param"):
            return frozenset([str(row[2])])
        own = self.program.names_of(module.base | number)
        behind = row[1] if row[0] == "phi" else (row[1],) if row[0] == "copy" else ()
        return own.union(*(self._names(module, one) for one in behind if one < number))


class Switched(NamedTuple):
    """A model (row) whose gradients a function switches, surely off or not, and the guard around that; None if only some of
    its parameters are switched."""

    target: int
    is_off: bool
    guard: int | None


def switched(module: Module, scope: int) -> Iterator[Switched]:
    """The objects whose gradients a function switches."""
    for one in module.scopes[scope].calls:
        row, site = module.nodes[one], module.table.sites[one]
        function = module.nodes[row[1]]
        if function[0] == "attr" and function[2] == "requires_grad_":
            is_off = bool(row[2]) and module.nodes[row[2][0]] == _FALSE
            yield from (Switched(target, is_off, guard) for target, guard in whose(module, function[1], site.guard, site.place))
    for target, name, value, place in module.scopes[scope].writes:
        if name == "requires_grad":
            yield from (Switched(model, module.nodes[value] == _FALSE, guard) for model, guard in whose(module, target, None, place))


def whose(module: Module, target: int, guard: int | None, place: int) -> Iterator[tuple[int, int | None]]:
    """The model that a target is, or whose parameters a loop goes through to it; without a guard if a filter chooses
    among them."""
    row = module.nodes[target]
    if row[0] == "part":
        row = module.nodes[row[1]]
    if row[0] != "elem":
        yield target, guard
        return
    made = module.nodes[row[1]]
    function = module.nodes[made[1]] if made[0] == "call" else ("",)
    loop = next((one for one in module.table.loops if one.value == row[1] and one.kind == "for"), None)
    if loop is None or function[0] != "attr" or function[2] not in _PARAMETERS:
        return
    is_filtered = any(one.kind == "if" and loop.place < one.place < place for one in module.table.guards)
    yield function[1], None if is_filtered else loop.guard


def _branches(module: Module, guard: int) -> Iterator[int]:
    while guard >= 0:
        if module.table.guards[guard].kind in ("if", "rest"):
            yield guard
        guard = module.table.guards[guard].parent


def _called(module: Module, number: int) -> str:
    """The last name of a decorator or context, whether it is called or not."""
    row = module.nodes[number]
    return module.last_name(row[1] if row[0] == "call" else number)


def _turns_off(module: Module, number: int) -> bool:
    """Whether a context or decorator surely turns gradients off: ``set_grad_enabled(phase == "train")`` may not."""
    name, row = _called(module, number), module.nodes[number]
    given = [*row[2], *(value for _, value in row[3])] if row[0] == "call" else []
    modes = [module.nodes[one] for one in given]
    if name == "set_grad_enabled":
        return modes == [_FALSE]
    return name in STOPPERS and (name != "inference_mode" or modes in ([], [("const", True)]))


def _may_turn_off(module: Module, number: int) -> bool:
    """Whether a decorator of the project or of a package is called like one that turns gradients off."""
    name = _called(module, number)
    return name not in ("enable_grad", *STOPPERS) and SPEAKS_OF_GRADIENTS.search(name) is not None


def readers(module: Module) -> dict[int, list[int]]:
    """The rows in which each call of a file is read."""
    found: dict[int, list[int]] = {}
    for number, row in enumerate(module.nodes):
        for one in _operands(row):
            found.setdefault(one, []).append(number)
    return found


def _operands(row: tuple[object, ...]) -> Iterator[int]:
    kind = row[0]
    if kind == "call":
        yield from row[2]  # type: ignore[misc]
        yield from (value for _, value in row[3])  # type: ignore[attr-defined]
    elif kind in ("phi", "bool"):
        yield from row[-1]  # type: ignore[misc]
    elif kind == "choice":
        yield from row[2:4]  # type: ignore[misc]
    elif kind in ("attr", "copy", "item", "star", "elem", "part", "enter"):
        yield row[1]  # type: ignore[misc]
    elif kind in ("seq", "map"):
        yield from row[2]  # type: ignore[misc]
    elif kind == "upd":
        yield row[3]  # type: ignore[misc]
