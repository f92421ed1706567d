"""The statements of a micro-batch from its forward to its last backward pass, and the DDP models that they run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from astroid import nodes

from ldlm_lint.checkers.gradient_sync import Accumulation, goes_back, local_function, own_calls
from ldlm_lint.python.model_names import looks_like_model
from ldlm_lint.python.names import bindings, is_named, last_name
from ldlm_lint.python.places import function_of
from ldlm_lint.python.walks import nodes_of

_NO_GRADIENT = {"no_grad", "inference_mode"}


class Model(NamedTuple):
    """The model of the forward pass, as written; ``always_wrapped`` if the file wraps it on every path."""

    text: str
    always_wrapped: bool


def micro_batch(found: Accumulation, wrapper: str) -> tuple[list[nodes.NodeNG], list[Model]]:
    """The statements in the loop's own block, and the models; no statements if a forward or backward pass may be
    skipped."""
    models = list(_models(found, wrapper))
    texts = {one.text for one in models}
    body: list[nodes.NodeNG] = found.loop.body
    passes = [one for one in own_calls(found.loop) if one is found.backward or goes_back(one)]
    places = [_index(body, one) for one in passes]
    if not models or None in places:
        return [], []
    last = max(place for place in places if place is not None)
    first = next((at for at in range(last + 1) if _touches(body[at], texts)), None)
    if first is None:
        return [], []
    block = body[first : last + 1]
    certain = any(_always(one, lambda call: call in passes) for one in block)
    runs = any(_always(one, lambda call: _takes(call, texts), loops=True) for one in block)
    return (block, models) if certain and runs and not _rebinds(found.loop, texts) else ([], [])


def _models(found: Accumulation, wrapper: str) -> Iterator[Model]:
    """Every model that the loop runs with gradients and that may be one of DDP: wrapped in this file, or passed in."""
    known: set[str] = set()
    for call in own_calls(found.loop):
        for node in _callees(call):
            text = node.as_string()
            if text in known or _is_without_gradients(call):
                continue
            wraps = _wraps(node, wrapper)
            if wraps or (node is call.func and _is_given(node)):
                known.add(text)
                yield Model(text, _always_wrapped(node, wraps))


def _callees(call: nodes.Call) -> Iterator[nodes.NodeNG]:
    """The callees and arguments of a call, and of the function of this file that it calls."""
    yield from (one for one in (call.func, *call.args, *(keyword.value for keyword in call.keywords)) if _is_place(one))
    inner = local_function(call)
    functions = (one.func for one in own_calls(inner)) if inner is not None else ()
    yield from (one for one in functions if _is_place(one) and not _is_bound_in(inner, one))


def _is_bound_in(function: nodes.FunctionDef, node: nodes.NodeNG) -> bool:
    """Whether a variable is the function's own, and not that of the enclosing code."""
    return isinstance(node, nodes.Name) and any(one.scope() is function for one in bindings(node))


def _is_place(node: nodes.NodeNG) -> bool:
    return isinstance(node, nodes.Name) or (isinstance(node, nodes.Attribute) and node.expr.as_string() == "self")


def _is_given(node: nodes.NodeNG) -> bool:
    """A model that the function gets from its caller."""
    if not isinstance(node, nodes.Name) or not looks_like_model(node.name) or node.name == "self":
        return False
    found = bindings(node)
    return bool(found) and all(isinstance(one.parent, nodes.Arguments) for one in found)


def _wraps(func: nodes.NodeNG, wrapper: str) -> list[nodes.NodeNG]:
    """The assignments that bind a variable, or an attribute of ``self``, to a wrapper."""
    if isinstance(func, nodes.Name):
        targets = [one for one in bindings(func) if isinstance(one, nodes.AssignName)]
    elif isinstance(func, nodes.Attribute) and func.expr.as_string() == "self":
        owner = next((one for one in func.node_ancestors() if isinstance(one, nodes.ClassDef)), None)
        every = nodes_of(owner, nodes.AssignAttr) if owner is not None else ()
        targets = [one for one in every if one.attrname == func.attrname]
    else:
        return []
    values = ((one, getattr(one.parent, "value", None)) for one in targets)
    return [one.parent for one, value in values if isinstance(value, nodes.Call) and is_named(value.func, {wrapper})]


def _always_wrapped(model: nodes.NodeNG, wraps: list[nodes.NodeNG]) -> bool:
    """Whether a wrapper is bound on every path to the loop: right in a function's block, and last of all bindings."""
    certain = [one.lineno for one in wraps if isinstance(one.parent, (nodes.FunctionDef, nodes.Module))]
    if not certain:
        return False
    if isinstance(model, nodes.Name):
        return all((one.lineno or 0) <= max(certain) for one in bindings(model))
    owner = next((one for one in model.node_ancestors() if isinstance(one, nodes.ClassDef)), None)
    others = nodes_of(owner, nodes.AssignAttr) if owner is not None else ()
    return all(one.lineno <= max(certain) for one in others if one.attrname == model.attrname)


def _index(body: list[nodes.NodeNG], node: nodes.NodeNG) -> int | None:
    """Which statement of a block holds a node."""
    around = {node, *node.node_ancestors()}
    return next((at for at, one in enumerate(body) if one in around), None)


def _touches(statement: nodes.NodeNG, texts: set[str]) -> bool:
    return any(_takes(call, texts) for call in nodes_of(statement, nodes.Call))


def _takes(call: nodes.Call, texts: set[str]) -> bool:
    return any(one.as_string() in texts for one in _callees(call))


def _always(statement: nodes.NodeNG, wanted: Callable[[nodes.Call], bool], *, loops: bool = False) -> bool:
    """Whether a statement certainly makes a call: on both sides of a test, not in a ``try`` that may be left early."""
    if isinstance(statement, nodes.If):
        sides = (statement.body, statement.orelse)
        return all(any(_always(one, wanted, loops=loops) for one in side) for side in sides)
    if isinstance(statement, nodes.With) or (loops and isinstance(statement, (nodes.For, nodes.While))):
        return any(_always(one, wanted, loops=loops) for one in statement.body)
    if isinstance(statement, (nodes.Try, nodes.For, nodes.While, nodes.FunctionDef, nodes.ClassDef)):
        return False
    return any(wanted(call) for call in nodes_of(statement, nodes.Call))


def _is_without_gradients(call: nodes.Call) -> bool:
    function = function_of(call)
    for parent in call.node_ancestors():
        if parent is function:
            return False
        if isinstance(parent, nodes.With):
            names = {last_name(item.func) for item, _ in parent.items if isinstance(item, nodes.Call)}
            if names & _NO_GRADIENT:
                return True
    return False


def _rebinds(loop: nodes.NodeNG, texts: set[str]) -> bool:
    """Whether the loop itself replaces a model, which the line in front would then not mean."""
    inside = (one for statement in loop.body for one in nodes_of(statement, (nodes.AssignName, nodes.AssignAttr)))
    return any(one.as_string() in texts for one in inside)


__all__ = ["Model", "micro_batch"]
