"""Training around an evaluation: loops that compute gradients, and backward passes that follow."""

from __future__ import annotations

from astroid import nodes

from ldlm_lint.checkers.evaluation_modes import switches
from ldlm_lint.python.flow import is_backward
from ldlm_lint.python.gradients import computes_gradients, mode_of
from ldlm_lint.python.names import bindings, last_name
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.vocabulary.models import names_training

COMPUTING = (nodes.Call, nodes.AssignAttr, nodes.Attribute)
_LEARNS = "_ldlm_learns"


def still_loops(loops: list[nodes.NodeNG]) -> list[nodes.NodeNG]:
    """The loops, from the innermost on, that compute no gradients."""
    found = []
    for loop in loops:
        if _tree_learns(loop):
            break
        found.append(loop)
    return found


def learns_at(node: nodes.NodeNG) -> bool:
    """Whether a node computes gradients, or calls a training: by its name, or a function of the file that does."""
    if computes_gradients(node):
        return True
    if not isinstance(node, nodes.Call) or mode_of(node) is not None:
        return False
    if names_training(last_name(node.func)) and isinstance(node.func, nodes.Name):
        return True
    local = bindings(node.func) if isinstance(node.func, nodes.Name) else []
    return any(isinstance(one, nodes.FunctionDef) and _function_learns(one) for one in local)


def _tree_learns(loop: nodes.NodeNG) -> bool:
    known: bool | None = loop.__dict__.get(_LEARNS)
    if known is None:
        known = any(map(learns_at, nodes_of(loop, COMPUTING)))
        loop.__dict__[_LEARNS] = known
    return known


def _function_learns(function: nodes.FunctionDef) -> bool:
    known: bool | None = function.__dict__.get(_LEARNS)
    if known is None:
        known = any(map(computes_gradients, nodes_of(function, COMPUTING)))
        function.__dict__[_LEARNS] = known
    return known


def learns_after(call: nodes.Call, still: list[nodes.NodeNG], loops: list[nodes.NodeNG], owner: nodes.NodeNG) -> bool:
    """Whether a backward pass follows before a model trains again: it may use the results."""
    end = (still[-1] if still else call).statement().end_lineno or 0
    resumed = [one.lineno for one, _, mode in switches(owner) if mode and one.lineno > end]
    backward = [one.lineno for one in nodes_of(owner, nodes.Call) if is_backward(one) and one.lineno > end]
    if bool(backward) and min(backward) < min(resumed, default=min(backward) + 1):
        return True
    # Without a loop of its own, only a model that trains again in the next iteration shows the end of the evaluation.
    return not still and not any(mode and loops[0].parent_of(one) for one, _, mode in switches(owner))
