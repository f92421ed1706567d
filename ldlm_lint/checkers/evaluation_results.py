"""The uses of an evaluation's results in a file: a loss that is differentiated needs its gradients."""

from __future__ import annotations

from collections.abc import Iterable

from astroid import nodes

from ldlm_lint.checkers.autograd_graphs import backward_passes, is_differentiated
from ldlm_lint.python.gradients import text_of
from ldlm_lint.python.memo import remembered
from ldlm_lint.python.names import last_name
from ldlm_lint.python.places import function_of
from ldlm_lint.python.walks import nodes_of


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
    if any(value is call or value.parent_of(call) for _, value in backward_passes(owner)):
        return True
    if isinstance(statement, (nodes.Assign, nodes.AugAssign)):
        targets = statement.targets if isinstance(statement, nodes.Assign) else [statement.target]
        parts = [one for target in targets for one in (target.elts if isinstance(target, nodes.Tuple) else [target])]
        return any(is_differentiated(text_of(one), owner) for one in parts)
    return False
