"""The expressions that an expression of a table is made of, and their users: a name that is read stands for the row of
its value."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from ldlm_lint.code.table import Node
from ldlm_lint.program.modules import Module

_FIRST = frozenset({"attr", "star", "elem", "part", "not", "copy", "enter"})
_PAIRS = frozenset({"item", "dcomp"})


def operands(row: Node) -> Iterator[int]:
    """The rows that a row is made of."""
    kind = row[0]
    if kind in _FIRST or kind == "comp":
        yield row[1]
    elif kind in _PAIRS:
        yield from row[1:3]
    elif kind in ("slice", "choice", "upd"):
        yield from row[1:4]
    elif kind == "op":
        yield from row[2:4]
    elif kind == "un":
        yield row[2]
    elif kind in ("bool", "seq"):
        yield from row[2]
    elif kind in ("phi", "fstr"):
        yield from row[1]
    elif kind == "cmp":
        yield row[2]
        yield from row[3]
    elif kind == "map":
        yield from (*row[1], *row[2])
    elif kind == "call":
        yield row[1]
        yield from row[2]
        yield from (one for _, one in row[3])


def users_in(module: Module) -> dict[int, list[int]]:
    """The rows that use each row of a module."""
    found: dict[int, list[int]] = defaultdict(list)
    for number, row in enumerate(module.nodes):
        for one in operands(row):
            if one:
                found[one].append(number)
    return found


def readers(module: Module) -> dict[int, list[int]]:
    """The rows that hand on, hold or take each row of a module: arguments, not what is called, asked or computed with."""
    found: dict[int, list[int]] = {}
    for number, row in enumerate(module.nodes):
        for one in _handed(row):
            found.setdefault(one, []).append(number)
    return found


def _handed(row: Node) -> Iterator[int]:
    kind = row[0]
    if kind == "call":
        yield from row[2]
        yield from (value for _, value in row[3])
    elif kind in ("phi", "bool"):
        yield from row[-1]
    elif kind == "choice":
        yield from row[2:4]
    elif kind in ("attr", "copy", "item", "star", "elem", "part", "enter"):
        yield row[1]
    elif kind in ("seq", "map"):
        yield from row[2]
    elif kind == "upd":
        yield row[3]
