"""The calls of a file that may belong to a training step, by their places: most statements have none."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable

from astroid import nodes

from ldlm_lint.checkers.step_names import last_name
from ldlm_lint.python.walks import preorder

LEAVES = (nodes.Continue, nodes.Break, nodes.Return, nodes.Raise)


class StepCalls:
    """Which statements and expressions of a module can be skipped; ``acts`` decides by the last name of a call."""

    def __init__(self, module: nodes.NodeNG, acts: Callable[[str], bool]) -> None:
        order = preorder(module)
        self._calls = order.places(nodes.Call)
        self._acting = [place for place in self._calls if acts(last_name(order.nodes[place].func))]
        self._later = order.places(nodes.Lambda)
        self._deciding = order.places((*LEAVES, nodes.FunctionDef, nodes.ClassDef))

    def idle(self, node: nodes.NodeNG) -> int | None:
        """The number of calls in a node, if none of them acts and none is in a ``lambda``; else None."""
        if _between(self._acting, node) or _between(self._later, node):
            return None
        return _between(self._calls, node)

    def idle_block(self, node: nodes.NodeNG) -> int | None:
        """As `idle`, for a statement with blocks, which may also leave the block around it, or define functions that
        are called later."""
        return None if _between(self._deciding, node) else self.idle(node)


def _between(places: list[int], node: nodes.NodeNG) -> int:
    """The number of places, in order, that are in a node."""
    first = bisect_left(places, node._ldlm_start)
    return bisect_left(places, node._ldlm_end, first) - first
