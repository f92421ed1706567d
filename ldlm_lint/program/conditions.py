"""The components of conditions."""

from __future__ import annotations

from ldlm_lint.program.modules import Module

MOST = 64
"""Expressions of one condition that are looked at."""


def words_below(module: Module, test: int) -> set[str]:
    """The names and texts in a condition."""
    return {word for number in _below(module, test) for word in _words(module, number)}


def _below(module: Module, number: int) -> list[int]:
    """An expression and the operands of tests in it."""
    found: list[int] = []
    todo = [number]
    while todo and len(found) < MOST:
        at = todo.pop()
        found.append(at)
        row = module.nodes[at]
        if row[0] in ("bool", "cmp"):
            todo += [*row[2]] if row[0] == "bool" else [row[2], *row[3]]
        elif row[0] in ("not", "copy", "attr", "call"):
            todo.append(row[1])
    return found


def _words(module: Module, number: int) -> list[str]:
    """The names and texts that an expression itself is."""
    row = module.nodes[number]
    if row[0] in ("attr", "free", "param", "impf"):
        return [str(row[2])]
    return [row[1]] if row[0] == "const" and isinstance(row[1], str) else []
