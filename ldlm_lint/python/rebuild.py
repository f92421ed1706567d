"""astroid nodes straight from Python's own syntax tree, three times as fast as astroid's builder.

Most kinds of nodes are built in the same way, by functions generated from their shapes (`building.shapes`). Nodes that
bind names or have a special order have explicit code in the modules next to it; astroid's builder builds the few other
kinds. Every node gets the range of its subtree in the preorder of the tree; see `ldlm_lint.python.walks`.
"""

from __future__ import annotations

import ast

from astroid import nodes

from ldlm_lint.python.building import bindings, definitions, pairs, shapes
from ldlm_lint.python.building.tree import BUILD, Growing, documented

for _room in (shapes, definitions, bindings, pairs):
    BUILD.update(_room.BUILDERS)


def rebuild(parsed: ast.Module, text: str, name: str, file: str, package: bool) -> nodes.Module:
    """The astroid tree of a parsed file, as built by astroid's builder without transforms and without inference."""
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
