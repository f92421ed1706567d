"""Scopes: where a name is bound, by the rules of Python, and by what."""

from __future__ import annotations

from astroid import nodes

from ldlm_lint.python.walks import nodes_of

_NONLOCALS = "_ldlm_nonlocals"


def scope_of(node: nodes.Name) -> nodes.NodeNG | None:
    """The module, class or function whose name this is; None for a builtin or a name from a star import."""
    scope = first = node.scope()
    while True:
        if (scope is first or not isinstance(scope, nodes.ClassDef)) and _own(scope, node.name):
            return scope
        if scope.parent is None:
            return None
        scope = scope.parent.scope()


def bindings(node: nodes.Name) -> list[nodes.NodeNG]:
    """All nodes that bind a name in its scope (AssignName, ImportFrom, FunctionDef, …), before or after its use.

    A ``nonlocal`` statement is among them where a nested function may bind the name anew.
    """
    scope = scope_of(node)
    return [*_own(scope, node.name), *_nonlocals(scope, node.name)] if scope is not None else []


def _own(scope: nodes.NodeNG, name: str) -> list[nodes.NodeNG]:
    """What binds a name in a scope, stars left out: a full build binds what they bring if it can import the module."""
    return [
        one for one in scope.locals.get(name, ()) if not (isinstance(one, nodes.ImportFrom) and one.names[0][0] == "*")
    ]


def _nonlocals(scope: nodes.NodeNG, name: str) -> list[nodes.NodeNG]:
    if not isinstance(scope, nodes.FunctionDef):
        return []
    found: list[nodes.NodeNG] | None = scope.__dict__.get(_NONLOCALS)
    if found is None:
        found = list(nodes_of(scope, nodes.Nonlocal))
        scope.__dict__[_NONLOCALS] = found
    return [one for one in found if name in one.names]
