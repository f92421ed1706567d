"""Operations that depend on their own results: a count, a growing text. They have as many values as the program has
steps."""

from __future__ import annotations

from collections import defaultdict

from ldlm_lint.code.table import Node
from ldlm_lint.program.modules import Module

_STEPS = 64
_PASSES = {"phi": slice(1, 2), "copy": slice(1, 2), "op": slice(2, 4), "un": slice(2, 3), "choice": slice(2, 4), "bool": slice(2, 3)}
"""The fields of a row whose values its own is made of."""


def counters(module: Module) -> frozenset[int]:
    """The operations of a module from whose result a way leads back to them: through a loop, or an attribute that they set."""
    set_as: dict[int, set[str]] = defaultdict(set)
    for scope in module.scopes:
        for _, name, value, _ in scope.writes:
            set_as[value].add(name)
    return frozenset(
        number for number, row in enumerate(module.nodes) if row[0] == "op" and _leads_back(module, number, set_as.get(number))
    )


def _leads_back(module: Module, number: int, names: set[str] | None) -> bool:
    seen = {number}
    todo = _operands(module.nodes[number])
    while todo and len(seen) < _STEPS:
        one = todo.pop()
        if one == number:
            return True
        row = module.nodes[one]
        if names and row[0] == "attr" and row[2] in names:
            return True
        if one not in seen:
            seen.add(one)
            todo += _operands(row)
    return False


def _operands(row: Node) -> list[int]:
    found: list[int] = []
    for field in row[_PASSES[row[0]]] if row[0] in _PASSES else ():
        found += [field] if field.__class__ is int else field
    return found
