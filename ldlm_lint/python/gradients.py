"""Context managers and decorators that turn autograd off, and names as text."""

from __future__ import annotations

from astroid import nodes

from ldlm_lint.python.names import bindings, last_name
from ldlm_lint.python.values import constant
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.vocabulary.models import STOPPERS


def stops(node: nodes.NodeNG) -> bool:
    """Whether a context manager or decorator turns gradients off, on some path at least."""
    for part in nodes_of(node, (nodes.Name, nodes.Attribute)):
        name = last_name(part)
        if name in STOPPERS:
            return not _turns_on(part)
        if isinstance(part, nodes.Name) and any(_definition_stops(one) for one in bindings(part)):
            return True
    return False


def _turns_on(name: nodes.NodeNG) -> bool:
    """``set_grad_enabled(True)`` and ``inference_mode(False)``."""
    call = name.parent
    if not isinstance(call, nodes.Call) or call.func is not name:
        return False
    values = [*call.args, *(one.value for one in call.keywords if one.arg == "mode")]
    return any(constant(one) is (last_name(name) == "set_grad_enabled") for one in values)


def _definition_stops(binding: nodes.NodeNG) -> bool:
    if isinstance(binding, (nodes.FunctionDef, nodes.ClassDef)):
        inside: nodes.NodeNG | None = binding
    else:
        inside = getattr(binding.parent, "value", None) if isinstance(binding, nodes.AssignName) else None
    if inside is None:
        return False
    return any(last_name(one) in STOPPERS for one in nodes_of(inside, (nodes.Name, nodes.Attribute)))


def decorators_of(node: nodes.FunctionDef | nodes.ClassDef) -> list[nodes.NodeNG]:
    """The decorators of a function or class."""
    return node.decorators.nodes if node.decorators else []


def dotted(node: nodes.NodeNG) -> str:
    """``a.b.c`` as text, also for targets of assignments; empty for other expressions."""
    parts = []
    while isinstance(node, (nodes.Attribute, nodes.AssignAttr)):
        parts.append(node.attrname)
        node = node.expr
    if not isinstance(node, (nodes.Name, nodes.AssignName)):
        return ""
    return ".".join([node.name, *reversed(parts)])
