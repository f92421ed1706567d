"""astroid nodes straight from Python's own syntax tree, three times as fast as astroid's builder makes them.

Most kinds of nodes are built alike, by functions that are generated from their shapes (`building.shapes`). What binds names
or has an order of its own is written out in the rooms beside it; astroid's builder makes the few kinds that are left.
Every node learns where its subtree stands in the preorder of the tree; see `ldlm_lint.python.walks`.
"""

from __future__ import annotations

import ast

from astroid import nodes

from ldlm_lint.python.building import bindings, definitions, pairs, shapes
from ldlm_lint.python.building.tree import BUILD, Growing, documented

for _room in (shapes, definitions, bindings, pairs):
    BUILD.update(_room.BUILDERS)


def rebuild(parsed: ast.Module, text: str, name: str, file: str, package: bool) -> nodes.Module:
    """The astroid tree of a parsed file, as astroid's builder makes it without transforms and without inference."""
    module = nodes.Module(name=name, file=file, path=[file], package=package)
    tree = Growing(module, text.split("\n"))
    tree.begin(module)
    doc, body = documented(parsed.body, module)
    module.postinit([BUILD[child.__class__](child, module, tree) for child in body], doc_node=doc)
    tree.end(module)
    module.file_encoding = "utf-8"
    shared: dict[int, list[nodes.NodeNG]] = {}
    for node, global_names in tree.imports:
        shared.update(bindings.bind_imported(node, global_names, module))
    for places in shared.values():
        places.sort(key=lambda one: one.fromlineno or 0)
    if tree.exact:
        module._ldlm_preorder = tree.order
    return module
