"""Type tests in conditions: a value is not a tensor there, arrays and numbers on the host may occur as well, or an early exit
rules classes out.

    model = build(name)
    if hasattr(model, "audio"):       # each model that always has one
        raise TypeError(name)
    train(model)                      # is not among these
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ldlm_lint.program.atoms import FIRST, NOTHING, Value
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Call, Class, Expr, Function
from ldlm_lint.program.spots import Spot

_ON_HOST = frozenset({"ndarray", "generic", "number", "floating", "integer", "Number", "Real"})
"""NumPy's arrays and numbers, and those of Python's abstract base classes."""
_NUMBERS = frozenset({"float", "int", "bool", "complex"})
Known = Callable[[Expr], Value]
"""What is known of an expression without tests."""
_Tests = list[tuple[Call, bool]]
_RAISES = ("raise", "after raise")
"""Conditions on the way of which no object is made."""


def is_told_from_tensors(spot: Spot, value: Expr) -> bool:
    """Whether a value is in the branch of a test that no tensor reaches: ``int(x)`` after ``is_tensor(x)``."""
    is_param = value.plain.kind == "param"
    for test, holds in _tests_around(spot):
        kinds = _kinds(test)
        if not kinds:
            continue
        tensors = {one.endswith("Tensor") for one in kinds}
        asked = test.positional[0]
        if len(tensors) == 1 and asked.is_alike(value) and tensors.pop() is not holds:
            return True
        # A caller that passes a number has not made a device tensor of it.
        if holds and not is_param and kinds <= _NUMBERS and asked.plain.kind == "param":
            return True
    return False


def may_be_array(spot: Spot, value: Expr) -> bool:
    """Whether a value comes from a name that is tested for arrays or host numbers: around the value, or anywhere if it
    is a parameter."""
    root = root_of(value)
    around = [test for test, holds in _tests_around(spot) if holds]
    if root.kind == "param":
        around += spot.function.calls
    return any(not _ON_HOST.isdisjoint(_kinds(test)) and _is_of(test.positional[0], root) for test in around)


def root_of(value: Expr) -> Expr:
    """The first value in a chain of attributes, methods and items."""
    at: Expr | None = value
    while at is not None:
        value = at
        at = at.receiver if isinstance(at, Call) else at.base if at.kind in ("attr", "item", "copy") else None
    return value


def _is_of(asked: Expr, root: Expr) -> bool:
    """Whether the tested expression is a value, or one of its alternatives."""
    one = root_of(asked)
    return root == one or any(root == way for way in one.ways if one.kind == "phi") or any(one == way for way in root.ways if root.kind == "phi")


def _tests_around(spot: Spot) -> Iterator[tuple[Call, bool]]:
    """The calls in the conditions around a place, with their results there: ``a(x)`` and ``b(x)`` failed behind ``if a(x) or
    b(x): raise``."""
    for guard in spot.guards:
        if guard.is_test:
            yield from _conjuncts(guard.test, bool(guard.holds))


def _conjuncts(test: Expr, holds: bool) -> Iterator[tuple[Call, bool]]:
    if test.kind == "not":
        yield from _conjuncts(test.operands[0], not holds)
    elif test.kind == "bool" and (test.operator == "And") is holds:
        for one in test.operands:
            yield from _conjuncts(one, holds)
    elif isinstance(test, Call):
        yield test, holds


def _kinds(call: Call) -> frozenset[str]:
    """The last names of the types that a call tests for; empty for another call."""
    if not call.positional:
        return frozenset()
    if call.called_name == "is_tensor":
        return frozenset({"Tensor"})
    return frozenset(_types(call.positional[1])) if call.called_name == "isinstance" and len(call.positional) == 2 else frozenset()


def _types(types: Expr) -> Iterator[str]:
    if types.kind in ("seq", "copy") or types.operator == "BitOr":
        for one in types.operands:
            yield from _types(one)
    elif types.name and types.kind != "param":
        yield types.name


class Narrowed(Concept):
    """Answers for the expressions of a program."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._always: dict[tuple[Class, str], bool] = {}

    def value(self, expr: Expr, spot: Spot, known: Known) -> Value:
        """What an expression may be at a place, also if it was wrapped or named anew since the test."""
        tests = [(test, holds) for test, holds in _tests_around(spot) if len(test.positional) == 2 and test.called_name in ("hasattr", "isinstance")]
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


__all__ = ["Narrowed", "is_told_from_tensors", "may_be_array", "root_of"]
