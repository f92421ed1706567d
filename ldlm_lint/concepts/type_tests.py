"""Type tests in conditions: a value is not a tensor, or arrays and numbers on the host may occur as well."""

from __future__ import annotations

from collections.abc import Iterator

from ldlm_lint.program.handles import Call, Expr
from ldlm_lint.program.spots import Spot

_ON_HOST = frozenset({"ndarray", "generic", "number", "floating", "integer", "Number", "Real"})
"""NumPy's arrays and numbers, and those of Python's abstract base classes."""
_NUMBERS = frozenset({"float", "int", "bool", "complex"})


def is_told_from_tensors(spot: Spot, value: Expr) -> bool:
    """Whether a value is in the branch of a test that no tensor reaches: ``int(x)`` after ``is_tensor(x)``."""
    is_param = value.plain.kind == "param"
    for test, holds in tests_around(spot):
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
    around = [test for test, holds in tests_around(spot) if holds]
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


def tests_around(spot: Spot) -> Iterator[tuple[Call, bool]]:
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


__all__ = ["is_told_from_tensors", "may_be_array", "root_of", "tests_around"]
