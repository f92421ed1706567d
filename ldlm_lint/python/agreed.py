"""Values on which the ranks have just agreed, and by which all of them then decide: no other place could read them."""

from __future__ import annotations

from astroid import nodes

from ldlm_lint.python.memo import remembered
from ldlm_lint.python.names import qualified
from ldlm_lint.python.places import function_of
from ldlm_lint.python.walks import nodes_of

_AGREE = {f"torch.distributed.{name}" for name in ("all_reduce", "broadcast", "all_gather_into_tensor")}
_TESTS = (nodes.If, nodes.While, nodes.IfExp, nodes.Assert)


def is_agreed(node: nodes.NodeNG) -> bool:
    """Whether a read decides which way a step goes, by a variable that a collective of all ranks has filled before."""
    function = function_of(node)
    shared = remembered(function, ("agreed values",), lambda: _shared(function))
    if not shared or not _decides(node):
        return False
    line = node.lineno or 0
    return any(begin < line < end for one in _names(node) for begin, end in shared.get(one, ()))


def _names(node: nodes.NodeNG) -> set[str]:
    return {one.name for one in nodes_of(node, nodes.Name)}


def _shared(function: nodes.NodeNG) -> dict[str, list[tuple[int, int]]]:
    """The variables that collectives fill: each with the line of the collective, and the next one that binds it anew."""
    found: dict[str, list[tuple[int, int]]] = {}
    calls = [call for call in nodes_of(function, nodes.Call) if call.args and isinstance(call.args[0], nodes.Name) and qualified(call.func) <= _AGREE]
    bound = [(one.name, one.lineno or 0) for one in nodes_of(function, nodes.AssignName)] if calls else []
    for call in calls:
        name, line = call.args[0].name, call.lineno or 0
        later = [at for one, at in bound if one == name and at > line]
        found.setdefault(name, []).append((line, min(later, default=1 << 30)))
    return found


def _decides(node: nodes.NodeNG) -> bool:
    """Whether a node stands in a test, or what it is assigned to is tested in its function."""
    for parent in node.node_ancestors():
        if isinstance(parent, _TESTS):
            return parent.test is node or parent.test.parent_of(node)
        if isinstance(parent, nodes.Assign):
            targets = {one.name for one in parent.targets if isinstance(one, nodes.AssignName)}
            tests = (one.test for one in nodes_of(function_of(node), _TESTS) if (one.lineno or 0) > (node.lineno or 0))
            return any(targets & _names(test) for test in tests)
        if parent.is_statement:
            return False
    return False


__all__ = ["is_agreed"]
