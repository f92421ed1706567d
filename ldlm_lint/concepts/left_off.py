"""Places behind a switch that nothing turns on: ``if self.use_checkpoint:``, and each construction leaves it at False.

What a user may choose (an option of a command line, a configuration, a class of a package that others import) is not off,
nor is an attribute that some code sets on an object whose class is not known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ldlm_lint.code.table import guards_above
from ldlm_lint.concepts.built_classes import has_plain_bases
from ldlm_lint.program.arms import of_parts
from ldlm_lint.program.atoms import FIRST, MASK
from ldlm_lint.program.calls import UNKNOWN, Caller
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.queries import State

if TYPE_CHECKING:
    from ldlm_lint.code.table import Guard, Node
    from ldlm_lint.program.modules import Module

_EITHER = frozenset([True, False])
_TESTS = ("if", "rest")


class LeftOff(Concept):
    """Answers for the calls of a program."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._is_used_outside = code.is_used_outside

    def is_left_off(self, call: int) -> bool:
        """Whether conditions around a call (key), or around each known call that leads to its function, never let it run."""
        seen, todo = {call}, [call]
        while todo:
            one = todo.pop()
            if self._is_shut(one):
                continue
            above = self._callers(self.program.function_of(one))
            if not above:
                return False
            todo += above - seen
            seen |= above
        return True

    def may_hold(self, module: Module, guard: int) -> bool:
        """Whether the conditions of a guard may hold."""
        return all(one.holds in self._truths(module, one.test) for one in _tests(module, guard))

    def _is_shut(self, call: int) -> bool:
        module = self.program.module_of(call)
        return not self.may_hold(module, module.table.sites[call & MASK].guard)

    def _callers(self, function: int) -> set[int]:
        """The calls of a function, if these are all; a method that Python or torch calls has others."""
        module = self.program.module_of(function)
        scope = module.scopes[function & MASK]
        is_special = scope.name.startswith("__") or scope.name == "forward" or bool(scope.decorators)
        if function & MASK == 0 or is_special or self._is_used_outside(module, scope.name):
            return set()
        edges = self.program.callers(function)
        return set() if any(edge.how == UNKNOWN for edge in edges) else {edge.call for edge in edges}

    def _truths(self, module: Module, number: int, above: frozenset[int] = frozenset()) -> frozenset[bool]:
        """The possible truths of an expression; both if anything about it is not known, or if it rests on itself."""
        seen, todo = {module.base | number}, [module.base | number]
        found: frozenset[bool] = frozenset()
        while todo and found != _EITHER:
            key = todo.pop()
            home = self.program.module_of(key)
            row = home.nodes[key & MASK]
            held = () if row[0] in ("const", "not", "bool") else self._held(home, row)
            if held is None or key in above:
                return _EITHER
            if not held:
                found |= self._computed(home, row, above | {key})
            todo += set(held) - seen
            seen |= set(held)
        return found

    def _computed(self, module: Module, row: Node, above: frozenset[int]) -> frozenset[bool]:
        if row[0] == "const":
            return frozenset([bool(row[1])])
        if row[0] == "not":
            return frozenset(not one for one in self._truths(module, row[1], above))
        return of_parts(row[1] == "And", [self._truths(module, one, above) for one in row[2]])

    def _held(self, module: Module, row: Node) -> Sequence[int] | None:
        """The expressions (keys) whose values an expression may have; None if there may be others."""
        if row[0] == "copy":
            return [module.base | row[1]]
        if row[0] == "phi":
            return [module.base | one for one in row[1]]
        if row[0] == "choice":
            return [module.base | one for one in row[2:4]]
        if row[0] == "call" and module.last_name(row[1]) == "bool" and len(row[2]) == 1 and not row[3]:
            return [module.base | row[2][0]]
        if row[0] == "free":
            bound = list(self.ask.bound_to(module, row))
            return bound if bound and row[2] not in self.program.other_writes else None
        if row[0] == "param":
            return self._given(module, row[1], row[2])
        return self._set_on_self(module, row) if row[0] == "attr" else None

    def _given(self, module: Module, scope: int, name: str) -> list[int] | None:
        """What callers pass for a parameter, or its default."""
        function = module.base | scope
        owner = self.program.owner.get(function)
        names = [module.scopes[scope].name] if owner is None else [self._name(one) for one in self.program.below(owner)]
        edges = self.program.callers(function)
        if not edges or any(self._is_used_outside(module, one) for one in names):
            return None
        found: set[int] = set()
        for edge in edges:
            given = self._passed(edge, function, name)
            if given is None:
                return None
            found |= given
        return sorted(found)

    def _name(self, owner: int) -> str:
        return self.program.module_of(owner).scopes[owner & MASK].name

    def _passed(self, edge: Caller, function: int, name: str) -> set[int] | None:
        """What one call passes for a parameter; None if that is not known."""
        call, how = edge.call, edge.how
        caller, home = self.program.module_of(call), self.program.module_of(function)
        if how == UNKNOWN or any(caller.nodes[one][0] == "star" for one in caller.nodes[call & MASK][2]):
            return None
        node = self.program.argument_node(call, function, how, name)
        if node is not None:
            return {node}
        argument = self.ask.argument(call, name)
        default = home.scopes[function & MASK].defaults.get(name)
        if argument.state is State.OPEN or (argument.state is not State.GIVEN and default is None):
            return None
        missing = {home.base | default} if default is not None and argument.state is not State.GIVEN else set()
        return {*argument.sources, *missing}

    def _set_on_self(self, module: Module, row: Node) -> list[int] | None:
        """What any code sets an attribute of ``self`` to."""
        program, name = self.program, row[2]
        owner = program.class_of_self(module, row[1])
        if owner is None or not has_plain_bases(program, owner):
            return None
        family = {*program.order(owner), *program.below(owner)}
        if self._may_be_set_by_name(name, family):
            return None
        found = [one for other in sorted(family) for one in program.own_writes.get((other, name), ())]
        for other in sorted(family):
            home = program.module_of(other)
            found += [home.base | one for one in home.scopes[other & MASK].bindings.get(name, ())]
        for target, written in program.other_writes.get(name, ()):
            classes = self._classes_of(target)
            if classes is None:
                return None
            found += [written] if classes & family else []
        return found or None

    def _may_be_set_by_name(self, name: str, family: set[int]) -> bool:
        """Whether a call of ``setattr`` may set an attribute of this name: ``for key, value in options: setattr(model, key,
        value)``."""
        for call in self.program.calls.get("setattr", ()):
            module = self.program.module_of(call)
            given = module.nodes[call & MASK][2]
            classes = self._classes_of(module.base | given[0]) if len(given) == 3 else None
            if classes is not None and not classes & family:
                continue
            texts = self.ask.meaning(module.base | given[1]) if len(given) == 3 else None
            if texts is None or name in texts.constants or not (texts.is_complete and len(texts.constants) == len(texts.value)):
                return True
        return False

    def _classes_of(self, key: int) -> set[int] | None:
        """The classes of the objects that an expression may be; None if not all are known."""
        of = self.program.atoms.of
        fields = [of[one] if one >= FIRST else ("",) for one in self.program.ask(key)]
        return {one[1] for one in fields} if fields and all(one[0] in ("i", "self") for one in fields) else None


def _tests(module: Module, guard: int) -> Iterator[Guard]:
    """The conditions that have to hold, or not to hold, at a guard."""
    for number in guards_above(module.table.guards, guard):
        one = module.table.guards[number]
        if one.kind in _TESTS and one.test and one.holds is not None:
            yield one


__all__ = ["LeftOff"]
