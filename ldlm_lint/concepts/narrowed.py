"""What an expression may be behind tests of its class: an early exit rules classes out.

    model = build(name)
    if hasattr(model, "audio"):       # each model that always has one
        raise TypeError(name)
    train(model)                      # is not among these
"""

from __future__ import annotations

from collections.abc import Callable

from ldlm_lint.concepts.type_tests import tests_around
from ldlm_lint.program.atoms import FIRST, NOTHING, Value
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Call, Class, Expr, Function
from ldlm_lint.program.spots import Spot

Known = Callable[[Expr], Value]
"""What is known of an expression without tests."""
_Tests = list[tuple[Call, bool]]
_RAISES = ("raise", "after raise")
"""Conditions on the way of which no object is made."""


class Narrowed(Concept):
    """Answers for the expressions of a program."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._always: dict[tuple[Class, str], bool] = {}

    def value(self, expr: Expr, spot: Spot, known: Known) -> Value:
        """What an expression may be at a place, also if it was wrapped or named anew since the test."""
        tests = [(test, holds) for test, holds in tests_around(spot) if len(test.positional) == 2 and test.called_name in ("hasattr", "isinstance")]
        return self._narrow(expr, tests, known, {}) if tests else known(expr)

    def _narrow(self, expr: Expr, tests: _Tests, known: Known, found: dict[Expr, Value]) -> Value:
        if expr in found:
            return found[expr]
        # What comes around in a loop adds nothing.
        found[expr] = NOTHING
        value = known(expr)
        if expr.kind in ("copy", "phi", "choice"):
            value = frozenset[int]().union(*(self._narrow(one, tests, known, found) for one in expr.ways))
        elif isinstance(expr, Call) and not expr.targets:
            value -= self._lost_in(expr, tests, known, found)
        for test, holds in tests:
            if test.positional[0].is_alike(expr):
                value = frozenset(one for one in value if not self._is_denied(test, holds, one))
        found[expr] = value
        return value

    def _lost_in(self, call: Call, tests: _Tests, known: Known, found: dict[Expr, Value]) -> Value:
        """What none of the operands of another package's wrapper is any more: ``compile(model)``, ``model.cuda()``."""
        kept, before = NOTHING, NOTHING
        for one in (*([call.receiver] if call.receiver is not None else []), *call.arguments):
            before |= known(one)
            kept |= self._narrow(one, tests, known, found)
        return before - kept

    def _is_denied(self, test: Call, holds: bool, atom: int) -> bool:
        """Whether a possible value is surely not what is there when a test has come out so."""
        fields = self.program.atoms.of[atom] if atom >= FIRST else ("",)
        if holds or fields[0] not in ("i", "self") or fields[2:]:
            return False
        owner, asked = Class(self.code, fields[1]), test.positional[1]
        if test.called_name == "hasattr":
            # That an object has no attribute is never sure: a wrapper counts as what it wraps.
            return asked.plain.kind == "const" and self._always_has(owner, str(asked.plain.constant))
        return not set(asked.as_classes).isdisjoint(owner.bases)

    def _always_has(self, owner: Class, name: str) -> bool:
        """Whether each object of a class has an attribute."""
        if (owner, name) not in self._always:
            self._always[owner, name] = any(_sets(one, name) for one in owner.bases)
        return self._always[owner, name]


def _sets(owner: Class, name: str) -> bool:
    if any(one.kind != "decl" for one in owner.bound(name)):
        return True
    return any(_writes(function, name) for function in owner.own_methods if function.name == "__init__")


def _writes(function: Function, name: str) -> bool:
    """Whether a constructor sets an attribute whatever is asked in it, unless it raises."""
    writes = (one for one in function.writes if one.name == name and one.base.kind == "param" and one.base.function == function)
    return any(all(guard.kind == "with" or guard.ends in _RAISES for guard in one.spot.guards) for one in writes)


__all__ = ["Narrowed"]
