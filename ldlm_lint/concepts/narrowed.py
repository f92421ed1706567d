"""What an expression may be behind tests of its class: an early exit rules classes out.

    model = build(name)
    if hasattr(model, "audio"):       # each model that always has one
        raise TypeError(name)
    train(model)                      # is not among these
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ldlm_lint.code.table import Node, guards_above
from ldlm_lint.concepts.alike import is_alike
from ldlm_lint.program import Program
from ldlm_lint.program.atoms import FIRST, MASK, NOTHING, Value
from ldlm_lint.program.modules import Module

Known = Callable[[int], Value]
"""What is known of an expression (key) without tests."""
_Tests = list[tuple[int, bool]]
_RAISES = ("raise", "after raise")
"""Conditions on the way of which no object is made."""


class Narrowed:
    """Answers for the expressions of a program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._always: dict[tuple[int, str], bool] = {}

    def value(self, key: int, guard: int, known: Known) -> Value:
        """What an expression may be under a guard, also if it was wrapped or named anew since the test."""
        module = self.program.module_of(key)
        tests = [(test, holds) for test, holds in _tests_around(module, guard) if self._asks_for_class(module, test)]
        return self._narrow(module, key & MASK, tests, known, {}) if tests else known(key)

    @staticmethod
    def _asks_for_class(module: Module, test: int) -> bool:
        row = module.nodes[test]
        return len(row[2]) == 2 and module.last_name(row[1]) in ("hasattr", "isinstance")

    def _narrow(self, module: Module, number: int, tests: _Tests, known: Known, found: dict[int, Value]) -> Value:
        if number in found:
            return found[number]
        # What comes around in a loop adds nothing.
        found[number] = NOTHING
        value = known(module.base | number)
        row = module.nodes[number]
        if row[0] == "copy":
            value = self._narrow(module, row[1], tests, known, found)
        elif row[0] in ("phi", "choice"):
            ways = row[1] if row[0] == "phi" else row[2:4]
            value = frozenset[int]().union(*(self._narrow(module, one, tests, known, found) for one in ways))
        elif row[0] == "call" and not self.program.targets_of.get(module.base | number):
            value -= self._lost_in(module, row, tests, known, found)
        for test, holds in tests:
            if is_alike(module, module.nodes[test][2][0], number):
                value = frozenset(one for one in value if not self._is_denied(module, test, holds, one))
        found[number] = value
        return value

    def _lost_in(self, module: Module, row: Node, tests: _Tests, known: Known, found: dict[int, Value]) -> Value:
        """What none of the operands of another package's wrapper is any more: ``compile(model)``, ``model.cuda()``."""
        kept, before = NOTHING, NOTHING
        function = module.nodes[row[1]]
        for one in (*([function[1]] if function[0] == "attr" else []), *row[2], *(given for _, given in row[3])):
            before |= known(module.base | one)
            kept |= self._narrow(module, one, tests, known, found)
        return before - kept

    def _is_denied(self, module: Module, test: int, holds: bool, one: int) -> bool:
        """Whether a possible value is surely not what is there when a test has come out so."""
        fields = self.program.atoms.of[one] if one >= FIRST else ("",)
        if fields[0] not in ("i", "self") or fields[2:]:
            return False
        row = module.nodes[test]
        asked = module.plain(row[2][1])
        if module.last_name(row[1]) == "hasattr":
            # That an object has no attribute is never sure: a wrapper counts as what it wraps.
            return not holds and asked[0] == "const" and self._always_has(fields[1], str(asked[1]))
        classes = self.program.atoms.kinds(self.program.ask(module.base | row[2][1]), "c")
        return not holds and any(of[1] in self.program.order(fields[1]) for of in classes)

    def _always_has(self, owner: int, name: str) -> bool:
        """Whether each object of a class has an attribute."""
        if (owner, name) not in self._always:
            self._always[owner, name] = any(self._sets(one, name) for one in self.program.order(owner))
        return self._always[owner, name]

    def _sets(self, owner: int, name: str) -> bool:
        module = self.program.module_of(owner)
        bindings = module.scopes[owner & MASK].bindings
        if any(module.nodes[one][0] != "decl" for one in bindings.get(name, ())):
            return True
        made = [module.nodes[one] for one in bindings.get("__init__", ())]
        return any(row[0] == "def" and self._writes(module, row[1], name) for row in made)

    @staticmethod
    def _writes(module: Module, function: int, name: str) -> bool:
        """Whether a constructor sets an attribute whatever is asked in it, unless it raises."""
        scope, guards = module.scopes[function], module.table.guards
        placed = {place for base, written, _, place in scope.writes if written == name and module.nodes[base][:2] == ("param", function)}
        around = [guards_above(guards, guard) for kind, _, _, guard, place, _ in scope.events if kind == "write" and place in placed]
        return any(all(guards[one].kind == "with" or guards[one].ends in _RAISES for one in every) for every in around)


def _tests_around(module: Module, guard: int) -> Iterator[tuple[int, bool]]:
    """The calls in the conditions around a place, with their results there: ``a(x)`` and ``b(x)`` failed behind ``if a(x) or
    b(x): raise``."""
    while guard >= 0:
        one = module.table.guards[guard]
        if one.kind in ("if", "rest") and one.test and one.holds is not None:
            yield from _conjuncts(module, one.test, one.holds)
        guard = one.parent


def _conjuncts(module: Module, test: int, holds: bool) -> Iterator[tuple[int, bool]]:
    row = module.nodes[test]
    if row[0] == "not":
        yield from _conjuncts(module, row[1], not holds)
    elif row[0] == "bool" and (row[1] == "And") is holds:
        for one in row[2]:
            yield from _conjuncts(module, one, holds)
    elif row[0] == "call":
        yield test, holds


__all__ = ["Narrowed"]
