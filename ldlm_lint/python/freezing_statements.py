"""Statements that switch the gradients of all parameters of a model off permanently."""

from __future__ import annotations

from collections.abc import Iterator

from astroid import nodes

from ldlm_lint.python.guards import block_of
from ldlm_lint.python.names import last_name
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.vocabulary.modules import RETURN_THEMSELVES


def is_frozen_at(frame: nodes.NodeNG, model: str, call: nodes.Call) -> bool:
    """Whether a function freezes the model in a variable on every way to one of its calls, and nothing on the way puts another
    model there, nor anything unfreezes it."""
    frozen = False
    for one, state in sorted(_states_of(frame, model), key=lambda found: found[0].lineno or 0):
        if state is False:
            return False
        if (one.lineno or 0) <= (call.lineno or 0):
            frozen = state is True and (frozen or _leads_to(one, call))
    return frozen


def _states_of(frame: nodes.NodeNG, model: str) -> Iterator[tuple[nodes.NodeNG, bool | None]]:
    """What in a function freezes a model (True), unfreezes it (False), or puts one there of which nothing is known (None)."""
    for one in nodes_of(frame, (nodes.Call, nodes.For, nodes.AssignName)):
        if isinstance(one, nodes.AssignName):
            if one.name == model and one.scope() is frame and not _keeps(one):
                made = getattr(one.parent, "value", None)
                yield one, True if isinstance(made, nodes.Call) and _freezes_result(made) else None
        else:
            state = _state_of_loop(one, model) if isinstance(one, nodes.For) else _state_of_call(one, model)
            if state is not None:
                yield one, state


def _leads_to(node: nodes.NodeNG, call: nodes.Call) -> bool:
    """Whether a statement is before a call in its block, or in one around it: no way leads around it."""
    statement = node.statement()
    while isinstance(statement.parent, nodes.With):
        statement = statement.parent
    return any(one.parent_of(call) for one in block_of(statement))


def _keeps(name: nodes.AssignName) -> bool:
    """``model = model.to(device)``: the variable keeps its model."""
    value = getattr(name.parent, "value", None)
    while isinstance(value, nodes.Call) and isinstance(value.func, nodes.Attribute) and value.func.attrname in RETURN_THEMSELVES:
        value = value.func.expr
    return isinstance(value, nodes.Name) and value.name == name.name


def _freezes_result(made: nodes.Call) -> bool:
    """``build().eval().requires_grad_(False)``"""
    while isinstance(made.func, nodes.Attribute) and made.func.attrname in RETURN_THEMSELVES and isinstance(made.func.expr, nodes.Call):
        if last_name(made.func) == "requires_grad_":
            break
        made = made.func.expr
    value = made.args[0] if made.args else None
    return last_name(made.func) == "requires_grad_" and isinstance(value, nodes.Const) and value.value is False


def unfreezes(call: nodes.Call) -> bool:
    """Whether a method of a model, or a loop over its parameters, switches gradients on:
    ``model.requires_grad_(True)``."""
    owner = call.func.expr.as_string() if isinstance(call.func, nodes.Attribute) else ""
    if _state_of_call(call, owner) is False:
        return True
    return isinstance(call.parent, nodes.For) and _state_of_loop(call.parent, owner) is False


def _state_of_call(call: nodes.Call, model: str) -> bool | None:
    """Whether a call freezes the model (True) or unfreezes it (False); None if it does neither."""
    if last_name(call.func) != "requires_grad_" or not isinstance(call.func, nodes.Attribute):
        return None
    owner = call.func.expr
    while isinstance(owner, nodes.Call) and last_name(owner.func) in RETURN_THEMSELVES and isinstance(owner.func, nodes.Attribute):
        owner = owner.func.expr
    if owner.as_string() != model:
        return None
    value = call.args[0] if call.args else None
    return isinstance(value, nodes.Const) and value.value is False


def _state_of_loop(loop: nodes.For, model: str) -> bool | None:
    """The same of ``for p in model.parameters(): p.requires_grad = False``; a loop that leaves some out does not freeze the model."""
    listing = loop.iter
    names = ("parameters", "named_parameters")
    if not isinstance(listing, nodes.Call) or not isinstance(listing.func, nodes.Attribute) or listing.func.attrname not in names:
        return None
    if listing.func.expr.as_string() != model:
        return None
    switches = [one for one in nodes_of(loop, (nodes.Assign, nodes.Call)) if _switches(one)]
    if not switches:
        return None
    return all(_is_off(one) and one.statement().parent is loop for one in switches)


def _switches(node: nodes.NodeNG) -> bool:
    if isinstance(node, nodes.Call):
        return last_name(node.func) == "requires_grad_"
    return any(isinstance(one, nodes.AssignAttr) and one.attrname == "requires_grad" for one in node.targets)


def _is_off(node: nodes.NodeNG) -> bool:
    value = (node.args[0] if node.args else None) if isinstance(node, nodes.Call) else node.value
    return isinstance(value, nodes.Const) and value.value is False


def _always_runs(node: nodes.NodeNG, frame: nodes.NodeNG) -> bool:
    """Whether a statement runs whenever its function does: a method other than the constructor must be called."""
    for parent in node.node_ancestors():
        if parent is frame:
            return True
        if isinstance(parent, nodes.FunctionDef):
            return parent.name == "__init__"
        if isinstance(parent, (nodes.If, nodes.IfExp, nodes.While, nodes.ExceptHandler, nodes.Match)):
            return False
    return True


__all__ = ["is_frozen_at", "unfreezes"]
