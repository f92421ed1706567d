"""Nodes whose children go in pairs: entries, comparisons, context managers and their targets."""

from __future__ import annotations

import ast
from typing import Any

from astroid import nodes

from ldlm_lint.python.building.operators import COMPARISONS
from ldlm_lint.python.building.tree import BUILD, LITERALS, Build, Growing, child_of, children_of, placed


def _with(raw: Any, parent: nodes.NodeNG, tree: Growing) -> nodes.With:
    node = placed(nodes.With if raw.__class__ is ast.With else nodes.AsyncWith, raw, parent, tree)
    items = [(child_of(one.context_expr, node, tree), child_of(one.optional_vars, node, tree)) for one in raw.items]
    node.postinit(items=items, body=children_of(raw.body, node, tree))
    tree.end(node)
    return node


def _dict(raw: ast.Dict, parent: nodes.NodeNG, tree: Growing) -> nodes.Dict:
    node = placed(LITERALS["Dict"], raw, parent, tree)
    node.postinit([_item(key, value, parent, node, tree) for key, value in zip(raw.keys, raw.values, strict=True)])
    tree.end(node)
    return node


def _item(
    key: ast.expr | None, value: ast.expr, parent: nodes.NodeNG, node: nodes.Dict, tree: Growing
) -> tuple[Any, Any]:
    """A key and its value; in astroid the ``**`` for a missing key has the parent of the dictionary as parent."""
    if key is not None:
        return BUILD[key.__class__](key, node, tree), BUILD[value.__class__](value, node, tree)
    stars = placed(nodes.DictUnpack, value, parent, tree)
    tree.end(stars)
    return stars, BUILD[value.__class__](value, node, tree)


def _dict_comprehension(raw: ast.DictComp, parent: nodes.NodeNG, tree: Growing) -> nodes.NodeNG:
    if raw.value is None:
        return tree.rest.build(raw, parent, tree)
    node = placed(nodes.DictComp, raw, parent, tree)
    outer, tree.scope = tree.scope, node
    key, value = child_of(raw.key, node, tree), child_of(raw.value, node, tree)
    node.postinit(key, value, children_of(raw.generators, node, tree))
    tree.scope = outer
    tree.end(node)
    return node


def _compare(raw: ast.Compare, parent: nodes.NodeNG, tree: Growing) -> nodes.Compare:
    node = placed(nodes.Compare, raw, parent, tree)
    left = BUILD[raw.left.__class__](raw.left, node, tree)
    pairs = zip(raw.ops, raw.comparators, strict=True)
    node.postinit(left, [(COMPARISONS[op.__class__], BUILD[one.__class__](one, node, tree)) for op, one in pairs])
    tree.end(node)
    return node


BUILDERS: dict[type, Build] = {
    ast.AsyncWith: _with,
    ast.Compare: _compare,
    ast.Dict: _dict,
    ast.DictComp: _dict_comprehension,
    ast.With: _with,
}
