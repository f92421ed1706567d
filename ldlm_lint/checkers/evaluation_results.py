"""The uses of an evaluation's results in a file: a loss that is differentiated needs its gradients."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from astroid import nodes

from ldlm_lint.python.gradients import text_of
from ldlm_lint.python.memo import remembered
from ldlm_lint.python.names import last_name
from ldlm_lint.python.places import function_of
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.vocabulary.losses import is_loss_name

_BACKWARD = ("backward", "manual_backward")


def result_is_differentiated(function: nodes.NodeNG) -> bool:
    """Whether a call in the same file differentiates the result of a function, or a value computed from it."""
    if not isinstance(function, nodes.FunctionDef):
        return False
    module = function.root()
    calls = remembered(module, ("calls by name",), lambda: _by_name(nodes_of(module, nodes.Call)))
    return any(_is_differentiated(one) for one in calls.get(function.name, ()))


def _by_name(calls: Iterable[nodes.Call]) -> dict[str, list[nodes.Call]]:
    found: dict[str, list[nodes.Call]] = {}
    for call in calls:
        found.setdefault(last_name(call.func), []).append(call)
    return found


def _is_differentiated(call: nodes.Call) -> bool:
    owner, statement = function_of(call), call.statement()
    if any(value is call or value.parent_of(call) for _, value in _backward_passes(owner)):
        return True
    if isinstance(statement, (nodes.Assign, nodes.AugAssign)):
        targets = statement.targets if isinstance(statement, nodes.Assign) else [statement.target]
        parts = [one for target in targets for one in (target.elts if isinstance(target, nodes.Tuple) else [target])]
        return any(_uses_are_differentiated(text_of(one), owner) for one in parts)
    return False


def _backward_passes(tree: nodes.NodeNG) -> Iterator[tuple[nodes.Call, nodes.NodeNG]]:
    """The backward passes of a tree and what they differentiate, such as ``scaler.scale(loss).backward()``."""
    for call in nodes_of(tree, nodes.Call):
        if not isinstance(call.func, nodes.Attribute) or call.func.attrname not in _BACKWARD:
            continue
        value = call.func.expr
        if call.args and not _is_loss_like(value) and not _is_gradient(call.args[0]):
            value = call.args[0]
        elif isinstance(value, nodes.Call) and last_name(value.func) in ("scale", "scale_loss") and value.args:
            value = value.args[0]
        yield call, value
    for statement in nodes_of(tree, nodes.With):
        for context, _ in statement.items:
            if isinstance(context, nodes.Call) and last_name(context.func) == "scale_loss" and context.args:
                yield context, context.args[0]


def _is_gradient(node: nodes.NodeNG) -> bool:
    """Whether ``output.backward(weight * copy.grad)`` gets a factor, while an engine gets the loss."""
    return any(isinstance(one, nodes.Attribute) and one.attrname == "grad" for one in [node, *nodes_of(node, nodes.Attribute)])


def _is_loss_like(node: nodes.NodeNG) -> bool:
    return is_loss_name(last_name(node))


def _uses_are_differentiated(into: str, owner: nodes.NodeNG) -> bool:
    """Whether the sum is differentiated itself, or is used in a value that is."""
    asked = [one.args[0] for one in nodes_of(owner, nodes.Call) if last_name(one.func) == "grad" and one.args]
    values = [*(value for _, value in _backward_passes(owner)), *asked]
    if not values:
        return False
    reached, before = {into.partition("[")[0]}, 0
    while len(reached) > before:
        before = len(reached)
        for statement in nodes_of(owner, (nodes.Assign, nodes.AugAssign)):
            if _mentions(statement.value, reached):
                targets = statement.targets if isinstance(statement, nodes.Assign) else [statement.target]
                reached |= {text_of(one).partition("[")[0] for one in targets}
    return any(_mentions(value, reached) for value in values)


def _mentions(node: nodes.NodeNG, names: set[str]) -> bool:
    # The text of an attribute ends with its name: so most need no text.
    ends = {name.rpartition(".")[2] for name in names}
    for one in nodes_of(node, (nodes.Name, nodes.Attribute)):
        if one.name in names if isinstance(one, nodes.Name) else one.attrname in ends and text_of(one) in names:
            return True
    return False
