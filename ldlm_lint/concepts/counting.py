"""Counters of steps, epochs or saves: loop indices, sums in variables, attributes and dictionaries, counters of
frameworks."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from ldlm_lint.concepts.outcomes import Outcomes
from ldlm_lint.program import handles
from ldlm_lint.program.atoms import MASK, NONE
from ldlm_lint.program.codebase import Codebase, Concept

if TYPE_CHECKING:
    from ldlm_lint.code.table import Guard, Node
    from ldlm_lint.program.modules import Module

_COUNTS = frozenset({"global_step", "current_epoch", "global_steps"})
"""What Lightning, DeepSpeed and the Trainer count in objects of their own."""
_MOST = 60
"""Values of one name that are looked at."""


class Counting(Concept):
    """Answers for the values of a program."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._counting: dict[int, bool] = {}
        self._outcomes = code[Outcomes]

    def _returned(self, call: int) -> list[tuple[int, int]]:
        """The functions of the project that a call goes to, with the expressions (keys) that they return."""
        found = []
        for function in sorted(self.program.targets_of.get(call, ())):
            module = self.program.module_of(function)
            scope = module.scopes[function & MASK]
            found += [(function, module.base | value) for value, _ in scope.returns if value and not scope.yields]
        return found

    def _ways(self, module: Module, row: Node) -> list[int]:
        """The cases of a ``phi`` that can occur."""
        return [one for one in row[1] if self._may_be_taken(module, one)]

    def _may_be_taken(self, module: Module, number: int) -> bool:
        """Whether a conditional call can run with the arguments of the callers: ``if name is None: name =
        str(epoch)``.
        """
        site = module.table.sites.get(number)
        guard = -1 if site is None else site.guard
        while guard >= 0:
            one = module.table.guards[guard]
            if one.kind in ("if", "rest") and one.test and not (self._outcomes.may_hold(handles.Guard(self.code, module.base | guard)) and self._may_be_left_out(module, one)):
                return False
            guard = one.parent
        return True

    def _may_be_left_out(self, module: Module, guard: Guard) -> bool:
        """Whether ``parameter is None`` can hold: not if all known callers pass something else."""
        row = module.nodes[guard.test]
        if row[0] != "cmp" or row[1] != ("Is",) or guard.holds is not True or module.nodes[row[3][0]] != ("const", None):
            return True
        parameter = module.plain(row[2])
        if parameter[0] != "param":
            return True
        function = module.base | parameter[1]
        given = self.program.given_for(function, parameter[2])
        values = [self.program.ask(node) for _, node in given]
        return len(given) < len(self.program.calls_of_function(function)) or any(not value or NONE in value for value in values) or not given

    def counts(self, key: int) -> bool:
        """Whether a value differs from step to step or epoch to epoch: loop indices, sums, or counters of a
        framework.
        """
        known = self._counting.get(key)
        if known is None:
            self._counting[key] = False
            known = self._counting[key] = self._counts(key)
        return known

    def _counts(self, key: int) -> bool:
        module = self.program.module_of(key)
        row = module.nodes[key & MASK]
        kind = row[0]
        if kind == "copy":
            return self.counts(module.base | row[1])
        if kind == "phi":
            return _adds_to_itself(module, key & MASK) or any(self.counts(module.base | one) for one in self._ways(module, row))
        if kind == "op":
            if any(_is_text(module, one) for one in row[2:4]):
                return False
            if row[1] == "Div":
                # A path is divided as well, by a name.
                return self.counts(module.base | row[2])
            return row[1] in ("Add", "Sub", "Mult", "FloorDiv") and any(self.counts(module.base | one) for one in row[2:4])
        if kind == "choice":
            return any(self.counts(module.base | one) for one in row[2:4])
        if kind == "call":
            plain = row[2] and module.last_name(row[1]) in ("int", "str")
            return self.counts(module.base | row[2][0]) if plain else self._returns_count(key)
        if kind == "part" and row[2] == 0:
            element = module.nodes[row[1]]
            return element[0] == "elem" and self._is_call_of(module, element[1], "enumerate")
        if kind == "elem":
            return any(self._is_call_of(module, row[1], name) for name in ("range", "trange", "count"))
        if kind == "param":
            given = self.program.given_for(module.base | row[1], row[2])
            return any(self.counts(one) for _, one in given)
        if kind == "free":
            return any(map(self.counts, self.ask.bound_to(module, row)))
        return (kind == "attr" and self._is_counted_attribute(module, row)) or (kind == "item" and self._is_counted_item(module, row))

    def _returns_count(self, call: int) -> bool:
        """Whether a method of the project returns its counter: ``self.total_steps()``."""
        returned = self._returned(call)
        rows = [self.program.module_of(value).nodes[value & MASK] for _, value in returned]
        return bool(returned) and all(row[0] in ("attr", "op") and self.counts(value) for row, (_, value) in zip(rows, returned, strict=True))

    @staticmethod
    def _is_call_of(module: Module, number: int, name: str) -> bool:
        row = module.plain(number)
        for _ in range(3):
            if row[0] != "call":
                return False
            if module.last_name(row[1]) == name:
                return True
            if not row[2]:
                return False
            row = module.plain(row[2][0])
        return False

    def _is_counted_attribute(self, module: Module, row: tuple[object, ...]) -> bool:
        """Whether an attribute of an object of the project is added up, by its own methods or by others: ``self.state.steps += 1``."""
        base, name = int(str(row[1])), str(row[2])
        own = self.program.class_of_self(module, base)
        owners = {own} if own is not None else self._classes(module.base | base)
        if not owners:
            return name in _COUNTS and not self.program.ask(module.base | base)
        written = [key for owner in owners for one in self.program.order(owner) for key in self.program.own_writes.get((one, name), ())]
        added = [value for target, value in self.program.other_writes.get(name, ()) if owners & self._classes(target)]
        if any(self._adds(key, name) for key in (*written, *added)):
            return True
        return own is not None and bool(written) and any(map(self.counts, written))

    def _classes(self, key: int) -> set[int]:
        """The classes of the project of which an expression may be an object."""
        value = self.program.ask(key)
        return {fields[1] for kind in ("i", "self") for fields in self.program.atoms.kinds(value, kind)}

    def _adds(self, key: int, name: str) -> bool:
        """Whether an attribute is increased by something."""
        home = self.program.module_of(key)
        row = home.nodes[key & MASK]
        return row[:2] == ("op", "Add") and home.plain(row[2])[0::2] == ("attr", name)

    def _is_counted_item(self, module: Module, row: Node) -> bool:
        """Whether an item of a dictionary is a counter, in any function of the program."""
        key = module.nodes[row[2]]
        adding = self._added_items.get(key[1], set()) if key[0] == "const" and isinstance(key[1], str) else set()
        return bool(adding) and not adding.isdisjoint(self.program.together.programs_of(module))

    @cached_property
    def _added_items(self) -> dict[object, set[int]]:
        found: dict[object, set[int]] = {}
        for module in self.program.live:
            for key in _added_items(module):
                found.setdefault(key, set()).add(module.index)
        return found


def _adds_to_itself(module: Module, phi: int) -> bool:
    """``step += 1`` in a loop, in some branch of it: an operation on the value that the round began with."""
    todo, seen = [phi], {phi}
    while todo and len(seen) < _MOST:
        row = module.nodes[todo.pop()]
        inner = list(row[1]) if row[0] == "phi" else [row[1]] if row[0] == "copy" else []
        for one in inner:
            added = module.nodes[one]
            if added[:2] == ("op", "Add") and (added[2] == phi or module.nodes[added[2]] == ("copy", phi)):
                return True
            if one not in seen:
                seen.add(one)
                todo.append(one)
    return False


def _added_items(module: Module) -> set[object]:
    """The keys whose value a module increases: ``state["step"] += 1``."""
    found: set[object] = set()
    for update in module.table.updates:
        _, _, name, value = module.nodes[update]
        added = module.nodes[value]
        old = module.nodes[added[2]] if added[:2] == ("op", "Add") else ("none",)
        if old[0] == "item" and module.nodes[name][0] == "const" and module.nodes[old[2]] == module.nodes[name]:
            found.add(module.nodes[name][1])
    return found


def _is_text(module: Module, number: int) -> bool:
    """Whether an expression is a text as written: ``folder + "/step-"``, ``str(step)``."""
    todo = [number]
    while todo:
        row = module.nodes[module.uncopied(todo.pop())]
        if row[0] == "op" and row[1] == "Add":
            todo += row[2:4]
        elif row[0] == "fstr" or (row[0] == "const" and isinstance(row[1], str)):
            return True
        elif row[0] == "call":
            called = module.plain(row[1])
            if called[0] == "free" and called[2] == "str":
                return True
    return False
