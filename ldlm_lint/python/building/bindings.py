"""Statements that bind names: imports, declarations, handlers."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from astroid import nodes

from ldlm_lint.python.building.tree import Build, Growing, child_of, children_of, placed


def _handler(raw: ast.ExceptHandler, parent: nodes.NodeNG, tree: Growing) -> nodes.ExceptHandler:
    node = placed(nodes.ExceptHandler, raw, parent, tree)
    caught = child_of(raw.type, node, tree)
    name = None
    if raw.name is not None:
        name = placed(nodes.AssignName, raw, node, tree, raw.name)
        tree.end(name)
        tree.bind(name.name, name)
    node.postinit(caught, name, children_of(raw.body, node, tree))
    tree.end(node)
    return node


def _import(raw: ast.Import, parent: nodes.NodeNG, tree: Growing) -> nodes.Import:
    node = placed(nodes.Import, raw, parent, tree, [(alias.name, alias.asname) for alias in raw.names])
    tree.end(node)
    for name, alias in node.names:
        tree.bind((alias or name).partition(".")[0], node)
    return node


def _import_from(raw: ast.ImportFrom, parent: nodes.NodeNG, tree: Growing) -> nodes.ImportFrom:
    names = [(alias.name, alias.asname) for alias in raw.names]
    node = nodes.ImportFrom(
        raw.module or "",
        names,
        raw.level or None,
        raw.lineno,
        raw.col_offset,
        parent,
        end_lineno=raw.end_lineno,
        end_col_offset=raw.end_col_offset,
    )
    tree.begin(node)
    tree.end(node)
    tree.imports.append((node, frozenset(tree.globals[-1]) if tree.globals else frozenset()))
    return node


def _global(raw: ast.Global, parent: nodes.NodeNG, tree: Growing) -> nodes.Global:
    node = placed(nodes.Global, raw, parent, tree, raw.names)
    tree.end(node)
    if tree.globals:
        for name in raw.names:
            tree.globals[-1].setdefault(name, []).append(node)
    return node


def bind_imported(
    node: nodes.ImportFrom, global_names: frozenset[str], module: nodes.Module
) -> Iterator[tuple[int, list[nodes.NodeNG]]]:
    """Bind the names of an import, without importing the module of a star; returns names bound more than once.

    Those lists, by their identity, must be sorted by line at the end.
    """
    if node.modname == "__future__":
        module.future_imports.update(name for name, _ in node.names)
    if any(name == "*" for name, _ in node.names):
        return
    for name, alias in node.names:
        bound = alias or name
        holder = module if bound in global_names else node.parent
        holder.set_local(bound, node)
        places = holder.scope().locals[bound]
        if len(places) > 1:
            yield id(places), places


BUILDERS: dict[type, Build] = {
    ast.ExceptHandler: _handler,
    ast.Global: _global,
    ast.Import: _import,
    ast.ImportFrom: _import_from,
}
