"""The state while a tree is built, and the builder of each kind of nodes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any

from astroid import nodes
from astroid.manager import AstroidManager
from astroid.rebuilder import TreeRebuilder

Build = Callable[[Any, Any, "Growing"], Any]


def _nameless(kind: type) -> type:
    """A class of literals without the attributes of its builtin.

    astroid looks those up in its model of the builtins, if one was built (0.1 s): ``name`` of a text would be ``str``
    or missing, depending on earlier files.
    """

    def missing(_self: nodes.NodeNG, name: str) -> Any:
        raise AttributeError(name)

    return type(kind.__name__, (kind,), {"__getattr__": missing})


LITERALS = {name: _nameless(getattr(nodes, name)) for name in ("Const", "Dict", "List", "Set", "Tuple")}


class Growing:
    """The state while one tree is built: its nodes in preorder, and actions for the end.

    ``scope`` is the result of ``scope()`` for the next built name, None if it must be computed.
    """

    def __init__(self, module: nodes.Module, lines: list[str]) -> None:
        self.module = module
        self.lines = lines
        self.order: list[nodes.NodeNG] = []
        self.exact = True
        self.scope: nodes.NodeNG | None = module
        self.globals: list[dict[str, list[nodes.Global]]] = []
        self.imports: list[tuple[nodes.ImportFrom, frozenset[str]]] = []

    @property
    def rest(self) -> Rest:
        """The builder for kinds of nodes without one here."""
        return Rest(self)

    def begin(self, node: nodes.NodeNG) -> None:
        """The next node of the preorder."""
        node._ldlm_start = len(self.order)
        self.order.append(node)

    def end(self, node: nodes.NodeNG) -> None:
        """A node whose subtree is complete."""
        node._ldlm_end = len(self.order)

    def bind(self, name: str, node: nodes.NodeNG) -> None:
        """Bind a name in the scope of its node, or in the module if it is declared global."""
        holder = self.module if self.globals and name in self.globals[-1] else node.parent
        holder.set_local(name, node)


class Rest(TreeRebuilder):
    """astroid's own builder for kinds of nodes that are rare or new; their children come back to `BUILD`."""

    def __init__(self, tree: Growing) -> None:
        super().__init__(AstroidManager())
        self._tree = tree

    def visit(self, node: ast.AST | None, parent: nodes.NodeNG) -> Any:
        """A child of such a node."""
        return None if node is None else BUILD[node.__class__](node, parent, self._tree)

    def _save_assignment(self, node: nodes.AssignName | nodes.DelName) -> None:
        self._tree.bind(node.name, node)

    def build(self, raw: ast.AST, parent: nodes.NodeNG, tree: Growing) -> nodes.NodeNG:
        """A node of another kind; its children may be created in any order."""
        tree.exact = False
        outer, tree.scope = tree.scope, None
        node = super().visit(raw, parent)
        tree.scope = outer
        return node


def documented(body: list[ast.stmt], parent: nodes.NodeNG) -> tuple[nodes.Const | None, list[ast.stmt]]:
    """The docstring of a body, as a node that is not part of the tree, and the statements after it."""
    first = body[0].value if body and isinstance(body[0], ast.Expr) else None
    if not isinstance(first, ast.Constant) or not isinstance(first.value, str):
        return None, body
    doc = LITERALS["Const"](
        first.value,
        first.lineno,
        first.col_offset,
        parent,
        first.kind,
        end_lineno=first.end_lineno,
        end_col_offset=first.end_col_offset,
    )
    return doc, body[1:]


def placed(kind: type, raw: Any, parent: nodes.NodeNG, tree: Growing, *values: Any) -> Any:
    """A node of a kind that has its position, created by astroid's constructor; ``values`` are its other arguments."""
    node = kind(
        *values,
        lineno=raw.lineno,
        col_offset=raw.col_offset,
        parent=parent,
        end_lineno=raw.end_lineno,
        end_col_offset=raw.end_col_offset,
    )
    tree.begin(node)
    return node


def children_of(raws: list[Any], node: nodes.NodeNG, tree: Growing) -> list[Any]:
    """Children of a node, in their order; None stands for itself."""
    return [None if raw is None else BUILD[type(raw)](raw, node, tree) for raw in raws]


def child_of(raw: Any, node: nodes.NodeNG, tree: Growing) -> Any:
    """A child of a node, or None if it has none."""
    return None if raw is None else BUILD[type(raw)](raw, node, tree)


def _other(raw: ast.AST, parent: nodes.NodeNG, tree: Growing) -> nodes.NodeNG:
    return tree.rest.build(raw, parent, tree)


def _kinds(kind: type[Any]) -> Iterator[type[Any]]:
    for one in kind.__subclasses__():
        yield one
        yield from _kinds(one)


BUILD: dict[type, Build] = dict.fromkeys(_kinds(ast.AST), _other)
"""The function for each kind of Python's nodes; astroid's builder for one that is not known here."""
