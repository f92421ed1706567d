"""What becomes of the variable that the result of a call is assigned to."""

from __future__ import annotations

from astroid import nodes

from ldlm_lint.python.places import function_of
from ldlm_lint.python.walks import nodes_of


def uses_behind(call: nodes.Call) -> list[nodes.Name]:
    """The uses of the variable that a statement assigns a call's result to, as far as they can come behind it.

    None are known where it is assigned to no variable, or in a loop, where what stands before comes behind it, too.
    """
    statement = call.statement()
    target = statement.targets[0] if isinstance(statement, nodes.Assign) and len(statement.targets) == 1 else None
    if not isinstance(target, nodes.AssignName) or any(isinstance(one, (nodes.For, nodes.While)) for one in statement.node_ancestors()):
        return []
    function = function_of(call)
    named = [one for one in nodes_of(function, nodes.Name) if one.name == target.name and not statement.parent_of(one)]
    if isinstance(function, nodes.Module):
        return named
    return [one for one in named if one.lineno > statement.tolineno or function_of(one) is not function]


def taker_of(use: nodes.Name) -> nodes.Call | None:
    """The call that takes a variable as it is, by its place or by a keyword."""
    holder = use.parent.parent if isinstance(use.parent, nodes.Keyword) else use.parent
    return holder if isinstance(holder, nodes.Call) and use is not holder.func else None
