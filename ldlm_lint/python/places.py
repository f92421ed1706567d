"""Where a node stands: its position, the function it runs in and the loops that repeat it."""

from __future__ import annotations

from astroid import nodes

from ldlm_lint.python.values import constant

_SCOPES = (nodes.FunctionDef, nodes.Lambda)
_LOOPS = (nodes.For, nodes.While, nodes.Comprehension)


def position_of(node: nodes.NodeNG) -> str:
    """The ``line:column`` by which facts and checkers name the same call."""
    return f"{node.lineno}:{node.col_offset}"


def scope_name(node: nodes.NodeNG) -> str:
    """The dotted name, inside its module, of the function or class that a scope node is; empty for a module."""
    parts = []
    while not isinstance(node, nodes.Module):
        if isinstance(node, (nodes.FunctionDef, nodes.ClassDef)):
            parts.append(node.name)
        node = node.parent
    return ".".join(reversed(parts))


def function_of(node: nodes.NodeNG) -> nodes.NodeNG:
    """The function that a node runs in, or the module."""
    while not isinstance(node, (nodes.FunctionDef, nodes.Module)):
        node = node.parent
    return node


def loops_around(node: nodes.NodeNG) -> list[nodes.NodeNG]:
    """The loops of the node's own function that repeat it, innermost first.

    The iterable of a ``for`` is evaluated once, outside of it; a loop over ``range(1)`` or a one-element
    literal repeats nothing.
    """
    found, child = [], node
    while not isinstance(child, (*_SCOPES, nodes.Module, nodes.ClassDef)):
        parent = child.parent
        inside = isinstance(parent, _LOOPS) and child is not getattr(parent, "iter", None)
        if inside and child not in getattr(parent, "orelse", ()) and not _runs_once(parent):
            found.append(parent)
        elif isinstance(parent, nodes.ComprehensionScope) and child not in parent.generators:
            found.extend(loop for loop in reversed(parent.generators) if not _runs_once(loop))
        child = parent
    return found


def _runs_once(loop: nodes.NodeNG) -> bool:
    iterable = getattr(loop, "iter", None)
    if isinstance(iterable, (nodes.Tuple, nodes.List)):
        return len(iterable.elts) <= 1
    if isinstance(iterable, nodes.Call) and isinstance(iterable.func, nodes.Name) and iterable.func.name == "range":
        bounds = [constant(argument) for argument in iterable.args]
        return all(type(bound) is int for bound in bounds) and 1 <= len(bounds) <= 2 and not range(*bounds)[1:]
    return False
