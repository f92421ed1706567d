"""Scopes: where a name is bound, by the rules of Python, and by what."""

from __future__ import annotations

import builtins
from typing import Any

from astroid import nodes

from ldlm_lint.python.walks import nodes_of

_BUILTINS = frozenset(dir(builtins))
_NONLOCALS = "_ldlm_nonlocals"
_BOUND = "_ldlm_bindings"
# Classes of nodes whose scope is that of their parent, as far as has been asked.
_PLAIN: set[Any] = set()
_NAMES = {nodes.Name, nodes.AssignName}

_Bound = tuple[nodes.NodeNG | None, tuple[nodes.NodeNG, ...]]


def enclosing(node: nodes.NodeNG) -> nodes.NodeNG:
    """astroid's ``node.scope()``, which names of a light tree know, without a call for each node on the way."""
    if node.__class__ in _NAMES:
        known: nodes.NodeNG | None = getattr(node, "_ldlm_scope", None)
        if known is not None:
            return known
    while True:
        while node.__class__ in _PLAIN:
            node = node.parent
        if node.__class__.scope is not nodes.NodeNG.scope:
            return node.scope()
        _PLAIN.add(node.__class__)


def scope_of(node: nodes.Name) -> nodes.NodeNG | None:
    """The module, class or function whose name this is; None for a builtin or a name from a star import."""
    return _bound(enclosing(node), node.name)[0]


def bindings(node: nodes.Name) -> list[nodes.NodeNG]:
    """All nodes that bind a name in its scope (AssignName, ImportFrom, FunctionDef, …), before or after its use.

    A ``nonlocal`` statement is among them where a nested function may bind the name anew.
    """
    return list(_bound(enclosing(node), node.name)[1])


def belongs_inside(node: nodes.NodeNG, function: nodes.NodeNG) -> bool:
    """Whether the variable that an expression begins with is one of a function inside of another, which cannot see it."""
    while not isinstance(node, nodes.Name):
        inner = getattr(node, "func", None) or getattr(node, "expr", None) or getattr(node, "value", None)
        if inner is None:
            return False
        node = inner
    scope = scope_of(node)
    return isinstance(scope, nodes.FunctionDef) and scope is not function and any(one is function for one in scope.node_ancestors())


def visible(node: nodes.NodeNG, name: str) -> list[nodes.NodeNG]:
    """What may bind a name where a node stands, by astroid's rules; those of builtins for their names.

    Its own lookup asks for the builtins in vain, too, for a name that nothing binds, and then has to paint them (0.1 s).
    """
    known = name in _BUILTINS or name.startswith("__") or _somewhere(enclosing(node), name)
    return list(node.lookup(name)[1]) if known else []


def _somewhere(scope: nodes.NodeNG, name: str) -> bool:
    while name not in scope.locals:
        if scope.parent is None:
            return False
        scope = enclosing(scope.parent)
    return True


def _bound(first: nodes.NodeNG, name: str) -> _Bound:
    """The scope of a name that is used in the scope ``first``, and what binds it; the answers rest with that scope."""
    known: dict[str, _Bound] | None = first.__dict__.get(_BOUND)
    if known is None:
        known = first.__dict__[_BOUND] = {}
    found = known.get(name)
    if found is None:
        scope = _scope(first, name)
        binders = () if scope is None else (*_own(scope, name), *_nonlocals(scope, name))
        found = known[name] = (scope, binders)
    return found


def _scope(first: nodes.NodeNG, name: str) -> nodes.NodeNG | None:
    scope = first
    while True:
        if (scope is first or not isinstance(scope, nodes.ClassDef)) and _own(scope, name):
            return scope
        if scope.parent is None:
            return None
        scope = enclosing(scope.parent)


def _own(scope: nodes.NodeNG, name: str) -> list[nodes.NodeNG]:
    """What binds a name in a scope, stars left out: a full build binds what they bring if it can import the module.

    A ``del`` binds nothing unless the name is read below it.
    """
    found = [
        one for one in scope.locals.get(name, ()) if not (isinstance(one, nodes.ImportFrom) and one.names[0][0] == "*")
    ]
    if not any(isinstance(one, nodes.DelName) for one in found):
        return found
    last = max((one.lineno for one in nodes_of(scope, nodes.Name) if one.name == name), default=0)
    return [one for one in found if not isinstance(one, nodes.DelName) or one.lineno < last]


def _nonlocals(scope: nodes.NodeNG, name: str) -> list[nodes.NodeNG]:
    if not isinstance(scope, nodes.FunctionDef):
        return []
    found: list[nodes.NodeNG] | None = scope.__dict__.get(_NONLOCALS)
    if found is None:
        found = list(nodes_of(scope, nodes.Nonlocal))
        scope.__dict__[_NONLOCALS] = found
    return [one for one in found if name in one.names]
