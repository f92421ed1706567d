"""Walks over the standard library's syntax tree, in no particular order, for a third of the price of ``ast.walk``.

Half of the nodes of a tree are names, constants and contexts: what no condition asks about is not gone to.
"""

from __future__ import annotations

import ast

# Fields of texts, numbers, operators and contexts: none holds a node that a condition asks about.
_ATOMS = frozenset({"arg", "attr", "conversion", "ctx", "id", "is_async", "kind", "level", "module", "op", "ops", "simple"})
_LEAVES = frozenset({ast.Constant, ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal})


class _Fields(dict[type[ast.AST], tuple[str, ...]]):
    """The fields of a class of nodes that may hold nodes."""

    def __missing__(self, kind: type[ast.AST]) -> tuple[str, ...]:
        found = () if kind in _LEAVES else tuple(one for one in kind._fields if one not in _ATOMS)
        self[kind] = found
        return found


_FIELDS = _Fields()


def nodes_below(top: ast.AST, stop: tuple[type[ast.AST], ...] = ()) -> list[ast.AST]:
    """A node and all below it; below ``top``, nodes of the classes ``stop`` are left out with what they hold."""
    fields, found, waiting = _FIELDS, [], [top]
    while waiting:
        node = waiting.pop()
        if stop and isinstance(node, stop) and node is not top:
            continue
        found.append(node)
        for name in fields[node.__class__]:
            value = getattr(node, name, None)
            if value.__class__ is list:
                waiting += [one for one in value if isinstance(one, ast.AST)]
            elif isinstance(value, ast.AST):
                waiting.append(value)
    return found
