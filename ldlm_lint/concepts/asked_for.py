"""Features that a user must enable: an interval that is tested before it is divided by, ``if every > 0 and step % every
== 0``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from ldlm_lint.code.table import Node
from ldlm_lint.program.atoms import MASK

if TYPE_CHECKING:
    from ldlm_lint.program.modules import Module
    from ldlm_lint.program.queries import Queries

_ABOVE = frozenset({("Gt", 0), ("NotEq", 0), ("Gt", -1), ("NotEq", -1), ("GtE", 1), ("IsNot", None)})
_MOST = 40
"""Expressions of one test that are looked at."""
_STEPS = 6


class Interval(NamedTuple):
    """The name that an interval has outside (``save_every``), and its defaults in the code, as Python writes them."""

    name: str
    defaults: tuple[str, ...] = ()


def intervals_asked_for(ask: Queries, call: int) -> list[Interval]:
    """The intervals that are tested in the conditions around a call."""
    module = ask.program.module_of(call)
    tests = list(_tests(module, module.table.sites[call & MASK].guard))
    tested = [one for test in tests for part in _conjuncts(module, test) if (one := _tested(module, part))]
    divisors = [one for test in tests for one in _divisors(module, test)]
    asked = [one for one in divisors if any(is_same(module, one, other) for other in tested)]
    return [found for one in asked if (found := _interval(ask, module.base | one, _STEPS)) is not None]


def _tests(module: Module, guard: int) -> Iterator[int]:
    """The tests that hold at a place."""
    while guard >= 0:
        one = module.table.guards[guard]
        if one.kind == "if" and one.holds:
            yield one.test
        guard = one.parent


def _conjuncts(module: Module, test: int) -> list[int]:
    row = module.nodes[test]
    if row[0] == "bool" and row[1] == "And":
        return [part for one in row[2] for part in _conjuncts(module, one)]
    return [test]


def _tested(module: Module, part: int) -> int:
    """``every``, ``every > 0``, ``every is not None``; 0 for another test."""
    row = module.nodes[part]
    if row[0] != "cmp":
        return part if row[0] in ("attr", "item", "param", "free", "copy", "phi", "call") else 0
    if len(row[1]) != 1:
        return 0
    return row[2] if (row[1][0], _constant(module, row[3][0])) in _ABOVE else 0


def _constant(module: Module, number: int) -> object:
    row = module.nodes[number]
    if row[0] == "un" and row[1] == "USub":
        inner = module.nodes[row[2]]
        return -inner[1] if inner[0] == "const" and isinstance(inner[1], int) else ...
    return row[1] if row[0] == "const" else ...


def _divisors(module: Module, test: int) -> Iterator[int]:
    """The divisors of remainders in a test."""
    todo, seen = [test], 0
    while todo and seen < _MOST:
        row = module.nodes[todo.pop()]
        seen += 1
        if row[0] == "op" and row[1] == "Mod":
            yield row[3]
        elif row[0] == "cmp":
            todo += [row[2], *row[3]]
        elif row[0] == "bool":
            todo += row[2]
        elif row[0] in ("not", "copy"):
            todo.append(row[1])


def is_same(module: Module, one: int, other: int) -> bool:
    """Whether two expressions are the same value, by their text."""
    first, second = _direct(module, one), _direct(module, other)
    if first == second:
        return True
    mine, its = module.nodes[first], module.nodes[second]
    if mine[0] == its[0] == "attr":
        return bool(mine[2] == its[2]) and is_same(module, mine[1], its[1])
    if mine[0] == its[0] == "item":
        return module.nodes[mine[2]] == module.nodes[its[2]] and is_same(module, mine[1], its[1])
    return mine[0] in ("free", "const") and mine == its


def _direct(module: Module, number: int) -> int:
    for _ in range(_STEPS):
        if module.nodes[number][0] != "copy":
            break
        number = module.nodes[number][1]
    return number


def _interval(ask: Queries, key: int, steps: int) -> Interval | None:
    module = ask.program.module_of(key)
    number = _direct(module, key & MASK)
    row = module.nodes[number]
    if row[0] == "attr":
        return Interval(row[2])
    if row[0] == "item":
        name = _constant(module, row[2])
        return Interval(name) if isinstance(name, str) else None
    if row[0] == "call":
        return _read(module, row)
    if row[0] == "param":
        return _parameter(ask, module, row, steps)
    if row[0] == "free":
        bound = module.scopes[0].bindings.get(row[2], ())
        one = _interval(ask, module.base | bound[0], steps - 1) if len(bound) == 1 and steps else None
        return one or Interval(row[2], _written(module, bound[0]) if len(bound) == 1 else ())
    return None


def _read(module: Module, row: Node) -> Interval | None:
    """``settings.get("save_every", -1)``, ``getattr(args, "save_every", 0)``."""
    name = module.last_name(row[1])
    args = row[2][1:] if name == "getattr" else row[2] if name == "get" else ()
    key = _constant(module, args[0]) if args else ...
    if not isinstance(key, str):
        return None
    others = args[1:]
    given = others[0] if others else next((value for keyword, value in row[3] if keyword == "default"), 0)
    return Interval(key, _written(module, given) if given else ("None",))


def _parameter(ask: Queries, module: Module, row: Node, steps: int) -> Interval:
    """A parameter: the argument of its only known caller, else its own name and default."""
    given = ask.program.given_for(module.base | row[1], row[2])
    found = _interval(ask, given[0][1], steps - 1) if len(given) == 1 and steps else None
    default = module.scopes[row[1]].defaults.get(row[2])
    return found or Interval(row[2], _written(module, default) if default and not given else ())


def _written(module: Module, number: int) -> tuple[str, ...]:
    value = _constant(module, number)
    return () if value is ... else (str(value),)
