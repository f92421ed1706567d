"""Which classes of models run while autograd records: a teacher, or an encoder whose features are only targets, does not.

The runs of a model are the calls of its object and of the methods that other code calls on it, also through lists,
dictionaries and attributes. A run is recorded unless a context around it, around each call of its function, or around
each run of the model that it is a part of turns gradients off.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from ldlm_lint.concepts.untrained import Untrained
from ldlm_lint.program.atoms import FIRST, MASK, Value
from ldlm_lint.program.codebase import Codebase, Concept

if TYPE_CHECKING:
    pass

_OPTIMIZERS = "torch.optim."
_TRAINER = "Trainer"
"""How the classes are called that run models out of sight: of transformers, trl, ignite, composer, Lightning."""
_LISTS = ("parameters", "named_parameters")
_HOLDS = frozenset({"free", "param", "attr", "item", "phi", "copy", "call", "part", "elem", "choice"})
"""Expressions that may be a model; most calls are of imported functions."""


class RecordedRuns(Concept):
    """Answers for classes of a program that are modules."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._untrained = code[Untrained]
        self._recorded: dict[int, bool] = {}

    def is_never_recorded(self, owner: int) -> bool:
        """Whether runs of a class's models are known, none of them is recorded, and no optimizer has their
        parameters."""
        runs = self.runs(owner)
        return bool(runs) and not any(map(self.is_recorded, runs)) and not self._may_be_optimized(owner)

    def is_wrapper_never_recorded(self, wrapper: int, behind: Callable[[int], Iterable[int]]) -> bool:
        """Whether runs of the model that a call wraps are known, and none of them is recorded.

        ``behind`` tells the wrappers that an expression may be: two models of one class have two wrappers.
        """
        runs = [one for one in self._runs_of_value(wrapper) if wrapper in behind(self._function(one))]
        return bool(runs) and not any(map(self.is_recorded, runs))

    def _runs_of_value(self, made: int) -> list[int]:
        """The calls, in the programs of a call's module, of objects that are like the one it makes."""
        program = self.program
        objects = frozenset(one for one in program.ask(made) if one >= FIRST)
        near = program.together.programs_of(program.module_of(made)) if objects else ()
        like = (calls for value, calls in self._calls_by_value.items() if not objects.isdisjoint(value))
        return [one for calls in like for one in calls if program.module_of(one).index in near]

    @cached_property
    def _calls_by_value(self) -> dict[Value, list[int]]:
        """The calls of what may be a model, by the value that is called: there are few different values."""
        found: dict[Value, list[int]] = defaultdict(list)
        for module in self.program.live:
            for one in module.table.sites:
                if module.nodes[module.nodes[one][1]][0] in _HOLDS:
                    found[self.program.ask(self._function(module.base | one))].append(module.base | one)
        return found

    def _function(self, call: int) -> int:
        module = self.program.module_of(call)
        return module.base | module.nodes[call & MASK][1]

    def runs(self, owner: int) -> list[int]:
        """The known calls of a class's models and of their methods, from outside of the class."""
        program = self.program
        family = {*program.order(owner), *program.below(owner)}
        calls = {edge.call for function in self._methods(owner) for edge in program.callers(function)}
        return sorted(one for one in calls if program.owner.get(program.function_of(one)) not in family)

    def _methods(self, owner: int) -> list[int]:
        program = self.program
        scopes = program.module_of(owner).scopes
        methods = (one for one, scope in enumerate(scopes) if scope.parent == owner & MASK and scope.kind == "def")
        return [program.module_of(owner).base | one for one in methods if scopes[one].name != "__init__"]

    def is_recorded(self, call: int) -> bool:
        """Whether autograd records what a call does, in at least one way that leads to it."""
        if call not in self._recorded:
            # A call that leads to itself is recorded only if another one that leads there is.
            self._recorded[call] = False
            self._recorded[call] = not self._untrained.records_nothing(call) and self._is_called_recorded(call)
        return self._recorded[call]

    def _is_called_recorded(self, call: int) -> bool:
        function = self.program.function_of(call)
        if function & MASK == 0:
            return True
        above = {edge.call for edge in self.program.callers(function)}
        return not above or any(map(self.is_recorded, sorted(above)))

    def _may_be_optimized(self, owner: int) -> bool:
        """Whether an optimizer gets the parameters of such a model itself, or of one that may be it."""
        return not self._optimized.isdisjoint((*self.program.order(owner), *self.program.below(owner)))

    @cached_property
    def _optimized(self) -> set[int]:
        """The classes whose ``parameters()`` are an argument of an optimizer, or whose objects a framework trains."""
        program, found = self.program, set(self._given_to_trainers())
        for name in _LISTS:
            for call in program.calls.get(name, ()):
                module = program.module_of(call)
                function = module.nodes[module.nodes[call & MASK][1]]
                if function[0] == "attr" and self._goes_to_optimizer(call):
                    found |= self._classes(program.ask(module.base | function[1]))
        return found

    def _given_to_trainers(self) -> Iterator[int]:
        """The classes of the models that a ``Trainer`` of a framework gets, also one that a class of the project extends."""
        program = self.program
        names = {name for name in program.calls if name.endswith(_TRAINER)}
        for call in (call for name in sorted(names) for call in program.calls[name]):
            module = program.module_of(call)
            row = module.nodes[call & MASK]
            if self.ask.names_of(program.ask(module.base | row[1])):
                for one in (*row[2], *(value for _, value in row[3])):
                    yield from self._classes(program.ask(module.base | one))

    def _goes_to_optimizer(self, parameters: int) -> bool:
        """Whether an optimizer is created in the statement of a call."""
        module = self.program.module_of(parameters)
        site = module.table.sites[parameters & MASK]
        around = (one for one in module.scopes[site.scope].calls if module.table.sites[one].place <= site.place < module.table.sites[one].end)
        return any(
            name.startswith(_OPTIMIZERS) for one in around for name in self.ask.names_of(self.program.ask(module.base | module.nodes[one][1]))
        )

    def _classes(self, value: Value) -> set[int]:
        of = self.program.atoms.of
        return {of[one][1] for one in value if one >= FIRST and of[one][0] in ("i", "self")}
