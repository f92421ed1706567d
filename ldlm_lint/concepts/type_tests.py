"""Type tests in conditions: a value is not a tensor, or arrays and numbers on the host may occur as well."""

from __future__ import annotations

from collections.abc import Iterator

from ldlm_lint.code.table import Node
from ldlm_lint.concepts.alike import is_alike
from ldlm_lint.program.modules import Module

_ON_HOST = frozenset({"ndarray", "generic", "number", "floating", "integer", "Number", "Real"})
"""NumPy's arrays and numbers, and those of Python's abstract base classes."""
_NUMBERS = frozenset({"float", "int", "bool", "complex"})
_MOST = 20


def is_told_from_tensors(module: Module, guard: int, value: int) -> bool:
    """Whether a value is, under a guard, in the branch of a test that no tensor reaches: ``int(x)`` after
    ``is_tensor(x)``."""
    is_param = module.plain(value)[0] == "param"
    for test, holds in tests_around(module, guard):
        kinds = _kinds(module, test)
        if not kinds:
            continue
        tensors = {one.endswith("Tensor") for one in kinds}
        asked = module.nodes[test][2][0]
        if len(tensors) == 1 and is_alike(module, asked, value) and tensors.pop() is not holds:
            return True
        # A caller that passes a number has not made a device tensor of it.
        if holds and not is_param and kinds <= _NUMBERS and module.plain(asked)[0] == "param":
            return True
    return False


def may_be_array(module: Module, guard: int, scope: int, value: int) -> bool:
    """Whether a value comes from a name that is tested for arrays or host numbers: around the value, or anywhere if it
    is a parameter."""
    root = root_of(module, value)
    around = [test for test, holds in tests_around(module, guard) if holds]
    if module.nodes[root][0] == "param":
        around += module.scopes[scope].calls
    return any(not _ON_HOST.isdisjoint(_kinds(module, test)) and _is_of(module, module.nodes[test][2][0], root) for test in around)


def root_of(module: Module, number: int) -> int:
    """The first value in a chain of attributes, methods and items."""
    for _ in range(_MOST):
        row = module.nodes[number]
        if row[0] in ("attr", "item", "copy"):
            number = row[1]
        elif row[0] == "call" and module.nodes[row[1]][0] == "attr":
            number = module.nodes[row[1]][1]
        else:
            break
    return number


def _is_of(module: Module, asked: int, root: int) -> bool:
    """Whether the tested expression is a value, or one of its alternatives."""
    one = root_of(module, asked)
    ways = {one, *(module.nodes[one][1] if module.nodes[one][0] == "phi" else ())}
    return root in ways or one in (module.nodes[root][1] if module.nodes[root][0] == "phi" else ())


def tests_around(module: Module, guard: int) -> Iterator[tuple[int, bool]]:
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


def _kinds(module: Module, call: int) -> frozenset[str]:
    """The last names of the types that a call tests for; empty for another call."""
    row = module.nodes[call]
    name = module.last_name(row[1]) if row[0] == "call" and row[2] else ""
    if name == "is_tensor":
        return frozenset({"Tensor"})
    return frozenset(_types(module, module.nodes[row[2][1]])) if name == "isinstance" and len(row[2]) == 2 else frozenset()


def _types(module: Module, row: Node) -> Iterator[str]:
    if row[0] == "seq":
        for one in row[2]:
            yield from _types(module, module.nodes[one])
    elif row[0] == "op" and row[1] == "BitOr":
        for one in row[2:4]:
            yield from _types(module, module.nodes[one])
    elif row[0] == "copy":
        yield from _types(module, module.nodes[row[1]])
    elif row[0] in ("attr", "free", "impf"):
        yield str(row[2])


__all__ = ["is_told_from_tensors", "may_be_array", "root_of", "tests_around"]
