"""Scopes: the bindings of names by the rules of Python."""

from __future__ import annotations

import builtins
from typing import Any

from astroid import nodes

from ldlm_lint.python.walks import nodes_of

_BUILTINS = frozenset(dir(builtins))
_NONLOCALS = "_ldlm_nonlocals"
_BOUND = "_ldlm_bindings"
# Classes of nodes whose scope is that of their parent, as far as computed.
_PLAIN: set[Any] = set()
_NAMES = {nodes.Name, nodes.AssignName}

_Bound = tuple[nodes.NodeNG | None, tuple[nodes.NodeNG, ...]]


def enclosing(node: nodes.NodeNG) -> nodes.NodeNG:
    """astroid's ``node.scope()``, which is stored on names of a light tree, without a call for each node on the way."""
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

    A ``nonlocal`` statement is included if a nested function may rebind the name.
    """
    return list(_bound(enclosing(node), node.name)[1])


def visible(node: nodes.NodeNG, name: str) -> list[nodes.NodeNG]:
    """The possible bindings of a name at a node, by astroid's rules; builtins for their names.

    astroid's own lookup also searches the builtins for an unbound name, and then has to build their model (0.1 s).
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
    """The scope of a name that is used in the scope ``first``, and its bindings; cached on that scope."""
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
    """The bindings of a name in a scope, without stars: a full build binds their names if it can import the module.

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
