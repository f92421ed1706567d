"""Walks over the standard library's syntax tree, in no particular order, for a third of the price of ``ast.walk``.

Half of the nodes of a tree are names, constants and contexts: what no condition asks about is not gone to.
"""

from __future__ import annotations

import ast

# Fields of texts, numbers, operators and contexts: none holds a node that a condition asks about.
_ATOMS = frozenset(
    {
        *("arg", "attr", "conversion", "ctx", "id", "is_async", "kind", "kwd_attrs", "level", "module", "name", "op", "ops"),
        *("rest", "simple", "type_comment"),
    }
)
_LEAVES = frozenset({ast.Constant, ast.MatchSingleton, ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal})


class _Fields(dict[type[ast.AST], tuple[str, ...]]):
    """The fields of a class of nodes that hold nodes, lists of them or nothing."""

    def __missing__(self, kind: type[ast.AST]) -> tuple[str, ...]:
        found = () if kind in _LEAVES else tuple(one for one in kind._fields if one not in _ATOMS)
        self[kind] = found
        return found


_FIELDS = _Fields()


def nodes_below(top: ast.AST, stop: tuple[type[ast.AST], ...] = ()) -> list[ast.AST]:
    """A node and all below it; below ``top``, nodes of the classes ``stop`` are left out with what they hold."""
    fields, found = _FIELDS, [top]
    waiting = [value for name in fields[top.__class__] for value in _listed(getattr(top, name, None))]
    while waiting:
        node = waiting.pop()
        kind = node.__class__
        # ``{**a}`` has a key that is no node.
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
    """A node and all below it in the order of ``ast.walk``: what lies less deep comes first."""
    fields, found, level = _FIELDS, [], _listed(top)
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


def _listed(value: object) -> list[ast.AST]:
    return value if isinstance(value, list) else [value] if isinstance(value, ast.AST) else []
