"""The steps of an optimizer in a loop, and the tests that let them run at the last of several micro-batches only."""

from __future__ import annotations

import re
from collections.abc import Iterator

from astroid import nodes

from ldlm_lint.checkers.gradient_sync_boundaries import Boundary, micro_boundary
from ldlm_lint.patterns import lazily
from ldlm_lint.python.calls import Arguments
from ldlm_lint.python.names import bindings
from ldlm_lint.python.places import function_of
from ldlm_lint.python.walks import nodes_of

_OPTIMIZER = lazily(r"optim|(^|_)opt(_|\d|$)|adam|sgd", re.I)
# A function of another file that steps, by its name.
_STEPS = lazily(r"^_*(optim\w*_step|step_optim\w*|(update|apply)_(weights|params|parameters|gradients|grads))$")
# The ``if``, its meaning, and its test.
_Guard = tuple[nodes.If, Boundary, nodes.NodeNG]


def _local_function(call: nodes.Call) -> nodes.FunctionDef | None:
    """The function or method of this file that a call calls."""
    if isinstance(call.func, nodes.Name):
        return next((one for one in bindings(call.func) if isinstance(one, nodes.FunctionDef)), None)
    if isinstance(call.func, nodes.Attribute) and call.func.expr.as_string() == "self":
        owner = next((one for one in call.node_ancestors() if isinstance(one, nodes.ClassDef)), None)
        methods = owner.mymethods() if owner is not None else ()
        return next((one for one in methods if one.name == call.func.attrname), None)
    return None


def _suite_of(statement: nodes.NodeNG) -> list[nodes.NodeNG]:
    """The block of statements that a statement is in."""
    parent = statement.parent
    for name in ("body", "orelse", "handlers", "finalbody"):
        block = getattr(parent, name, None)
        if isinstance(block, list) and statement in block:
            return block
    return [statement]


def guard_of(call: nodes.Call, loop: nodes.NodeNG) -> _Guard | None:
    """The ``if`` that lets a call of a loop run only at the last micro-batch."""
    child: nodes.NodeNG = call
    while child is not loop:
        parent = child.parent
        if isinstance(parent, nodes.If) and child is not parent.test:
            boundary = micro_boundary(parent.test, parent.body)
            if boundary is not None and boundary.last == (child in parent.body):
                return parent, boundary, parent.test
        suite = _suite_of(child) if child.is_statement else []
        for at, before in enumerate(suite):
            if before is child:
                break
            boundary = micro_boundary(before.test, suite[at + 1 :]) if _leaves_early(before) else None
            if boundary is not None and not boundary.last:
                return before, boundary, before.test
        child = parent
    return None


def _leaves_early(node: nodes.NodeNG) -> bool:
    return isinstance(node, nodes.If) and isinstance(node.body[-1], (nodes.Continue, nodes.Return))


def _is_backward(call: nodes.Call) -> bool:
    """``loss.backward()``; engines take the loss as an argument."""
    if not isinstance(call.func, nodes.Attribute) or call.func.attrname != "backward" or call.args:
        return False
    return Arguments(call)["loss"].absent and not _is_of_autograd(function_of(call))


def _is_of_autograd(function: nodes.NodeNG) -> bool:
    """``backward(ctx, …)`` of a custom function."""
    arguments = function.args.args if isinstance(function, nodes.FunctionDef) and function.name == "backward" else []
    return bool(arguments) and (arguments[0].name == "ctx" or function.decorators is not None)


def is_step(call: nodes.Call) -> bool:
    """A step of an optimizer, or a call of a function that takes it and does no backward pass."""
    if _is_optimizer_step(call) or _STEPS.search(_last_name(call.func)):
        return True
    inner = _local_function(call)
    if inner is None or inner is function_of(call):
        return False
    calls = list(own_calls(inner))
    return any(map(_is_optimizer_step, calls)) and not any(map(_is_backward, calls))


def _is_optimizer_step(call: nodes.Call) -> bool:
    if not isinstance(call.func, nodes.Attribute) or call.func.attrname != "step":
        return False
    receiver = _last_name(call.func.expr)
    return bool(_OPTIMIZER.search(receiver)) or ("scaler" in receiver.lower() and len(call.args) == 1)


def _last_name(node: nodes.NodeNG) -> str:
    while isinstance(node, nodes.Subscript):
        node = node.value
    return node.attrname if isinstance(node, nodes.Attribute) else getattr(node, "name", "")


def own_calls(node: nodes.NodeNG) -> Iterator[nodes.Call]:
    """The calls below a node, without those in functions defined in it."""
    owner = node if isinstance(node, nodes.FunctionDef) else function_of(node)
    return (call for call in nodes_of(node, nodes.Call) if function_of(call) is owner)


__all__ = ["guard_of", "is_step", "own_calls"]
