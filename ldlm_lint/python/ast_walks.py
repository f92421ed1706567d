"""Walks over the standard library's syntax tree, in no particular order, in a third of the time of ``ast.walk``.

Half of the nodes of a tree are names, constants and contexts: irrelevant nodes are not visited. Each walk is written
out: a call per node would take as long as the walk itself.
"""

from __future__ import annotations

import ast
from typing import Any

# Fields of texts, numbers, operators and contexts: none contains a node that a condition needs.
_ATOMS = frozenset(
    {
        *("arg", "attr", "conversion", "ctx", "id", "is_async", "kind", "kwd_attrs", "level", "module", "name", "op", "ops"),
        *("rest", "simple", "type_comment"),
    }
)
_LEAVES = frozenset({ast.Constant, ast.MatchSingleton, ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal})


class _Fields(dict[type[ast.AST], tuple[str, ...]]):
    """The fields of a class of nodes with nodes, lists of them or nothing."""

    def __missing__(self, kind: type[ast.AST]) -> tuple[str, ...]:
        found = () if kind in _LEAVES else tuple(one for one in kind._fields if one not in _ATOMS)
        self[kind] = found
        return found


FIELDS = _Fields()
"""The fields of each class of nodes that may hold nodes."""


def nodes_below(top: ast.AST, stop: tuple[type[ast.AST], ...] = ()) -> list[ast.AST]:
    """A node and all below it; below ``top``, nodes of the classes ``stop`` are left out with their contents."""
    fields, found = FIELDS, [top]
    waiting = held(top)
    while waiting:
        node = waiting.pop()
        kind = node.__class__
        # ``{**a}`` has a key that is not a node.
        if kind in stop or node is None:
            continue
        found.append(node)
        for name in fields[kind]:
            value = getattr(node, name)
            if value.__class__ is list:
                waiting += value
            elif value is not None:
                waiting.append(value)
    return found


def level_by_level(top: ast.AST) -> list[ast.AST]:
    """A node and all below it in the order of ``ast.walk``: less deep nodes come first."""
    fields = FIELDS
    found: list[ast.AST] = []
    level = [top]
    while level:
        found += level
        below: list[ast.AST] = []
        for node in level:
            for name in fields[node.__class__]:
                value = getattr(node, name)
                if value.__class__ is list:
                    below += filter(None, value)
                elif value is not None:
                    below.append(value)
        level = below
    return found


def held(top: ast.AST) -> list[Any]:
    """The contents of a node's fields, including None; a manually built node may lack some."""
    found: list[Any] = []
    for name in FIELDS[top.__class__]:
        value = getattr(top, name, None)
        if value.__class__ is list:
            found += value
        else:
            found.append(value)
    return found
