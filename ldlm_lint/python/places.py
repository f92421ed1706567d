"""The place of a node: its position, the function it runs in and the loops that repeat it.

Facts common to a whole statement are computed once and cached on it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from astroid import nodes

from ldlm_lint.python.values import constant

_SCOPES = (nodes.FunctionDef, nodes.Lambda)
_LOOPS = (nodes.For, nodes.While, nodes.Comprehension)
_ENDS = (*_SCOPES, nodes.Module, nodes.ClassDef)
_RUNNING = {nodes.FunctionDef, nodes.AsyncFunctionDef, nodes.Module}
_REPEATING = {
    *(nodes.For, nodes.AsyncFor, nodes.While, nodes.Comprehension),
    *(nodes.ListComp, nodes.SetComp, nodes.DictComp, nodes.GeneratorExp),
}
_NAME = "_ldlm_scope_name"
_AROUND = "_ldlm_loops"


def position_of(node: nodes.NodeNG) -> str:
    """The ``line:column`` by which facts and checkers name the same call."""
    return f"{node.lineno}:{node.col_offset}"


def scope_name(node: nodes.NodeNG) -> str:
    """The dotted name, inside its module, of the function or class that a scope node is; empty for a module."""
    known: str | None = node.__dict__.get(_NAME)
    if known is None:
        outer = "" if isinstance(node, nodes.Module) else scope_name(_owner(node.parent))
        own = node.name if isinstance(node, (nodes.FunctionDef, nodes.ClassDef)) else ""
        known = node.__dict__[_NAME] = f"{outer}.{own}" if outer and own else outer or own
    return known


def _owner(node: nodes.NodeNG) -> nodes.NodeNG:
    """The function, class or module that a node is or is in."""
    while not isinstance(node, (nodes.FunctionDef, nodes.ClassDef, nodes.Module)):
        node = node.parent
    return node


def function_of(node: nodes.NodeNG) -> nodes.NodeNG:
    """The function that a node runs in, or the module."""
    while node.__class__ not in _RUNNING:
        node = node.parent
    return node


def by_function(module: nodes.Module, found_in: Iterable[nodes.NodeNG]) -> dict[nodes.NodeNG, list[nodes.NodeNG]]:
    """Nodes, in preorder, by the function or the module that they run in, including those of functions."""
    found: dict[nodes.NodeNG, list[nodes.NodeNG]] = {module: []}
    around = [module]
    for node in found_in:
        while around[-1]._ldlm_end <= node._ldlm_start:
            around.pop()
        if node.__class__ in _RUNNING:
            found[node] = []
            around.append(node)
        else:
            found[around[-1]].append(node)
    return found


def loops_around(node: nodes.NodeNG) -> list[nodes.NodeNG]:
    """The loops of the node's own function that repeat it, innermost first.

    The iterable of a ``for`` is evaluated once, outside of it; a loop over ``range(1)`` or a one-element
    literal repeats nothing.
    """
    found: list[nodes.NodeNG] = []
    child = node
    while not child.is_statement:
        if isinstance(child, _ENDS):
            return found
        found.extend(_repeat(child.parent, child))
        child = child.parent
    return [*found, *_around(child)]


def loops_around_definition(function: nodes.FunctionDef) -> list[nodes.NodeNG]:
    """The loops of the enclosing function that define a function again in each iteration, innermost first."""
    return [*_repeat(function.parent, function), *loops_around(function.parent)]


def _around(statement: nodes.NodeNG) -> tuple[nodes.NodeNG, ...]:
    """The loops around a statement; those around its blocks are found on the way."""
    chain = []
    while (known := statement.__dict__.get(_AROUND)) is None:
        chain.append(statement)
        if isinstance(statement, _ENDS):
            break
        statement = statement.parent
    found: tuple[nodes.NodeNG, ...] = known or ()
    for one in reversed(chain):
        if not isinstance(one, _ENDS):
            found = (*_repeat(one.parent, one), *found)
        one.__dict__[_AROUND] = found
    return found


def _repeat(parent: nodes.NodeNG, child: nodes.NodeNG) -> list[nodes.NodeNG]:
    """The loops that a parent of a node is to it."""
    if parent.__class__ not in _REPEATING:
        return []
    if isinstance(parent, _LOOPS):
        if (
            child is not getattr(parent, "iter", None)
            and child not in getattr(parent, "orelse", ())
            and not _runs_once(parent)
        ):
            return [parent]
    elif isinstance(parent, nodes.ComprehensionScope) and child not in parent.generators:
        return [loop for loop in reversed(parent.generators) if not _runs_once(loop)]
    return []


def _runs_once(loop: nodes.NodeNG) -> bool:
    iterable = getattr(loop, "iter", None)
    if isinstance(iterable, (nodes.Tuple, nodes.List)):
        return len(iterable.elts) <= 1
    if isinstance(iterable, nodes.Call) and isinstance(iterable.func, nodes.Name) and iterable.func.name == "range":
        bounds: list[Any] = [constant(argument) for argument in iterable.args]
        return all(type(bound) is int for bound in bounds) and 1 <= len(bounds) <= 2 and not range(*bounds)[1:]
    return False
