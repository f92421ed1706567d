"""All nodes of a kind below a node, from one list per tree: walking subtrees again and again was a third of a run.

`nodes_of` gives what astroid's ``nodes_of_class`` gives, in the same order, without going through the tree: every node
knows where its subtree begins and ends in the tree's preorder.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import TypeVar

from astroid import nodes

_Node = TypeVar("_Node", bound=nodes.NodeNG)


class _Order:
    """The preorder of a tree: each node's place and the end of its subtree, and the places of each class of nodes."""

    def __init__(self, root: nodes.NodeNG) -> None:
        self.nodes: list[nodes.NodeNG] = []
        self.ranges: dict[nodes.NodeNG, tuple[int, int]] = {}
        self._places: dict[type, list[int]] = {}
        self._of: dict[object, list[int]] = {}
        # Iterative: generated code nests deeper than Python's own stack.
        waiting: list[tuple[nodes.NodeNG, int]] = [(root, -1)]
        while waiting:
            node, start = waiting.pop()
            if start >= 0:
                self.ranges[node] = (start, len(self.nodes))
                continue
            waiting.append((node, len(self.nodes)))
            self._places.setdefault(type(node), []).append(len(self.nodes))
            self.nodes.append(node)
            waiting.extend((child, -1) for child in reversed(list(node.get_children())))

    def places(self, kinds: type | tuple[type, ...]) -> list[int]:
        """The places of the nodes of some classes, subclasses included, in order."""
        if kinds not in self._of:
            wanted = [places for kind, places in self._places.items() if issubclass(kind, kinds)]
            self._of[kinds] = wanted[0] if len(wanted) == 1 else sorted(place for places in wanted for place in places)
        return self._of[kinds]


# Kept at the root itself, so that it goes when the tree goes.
_ATTRIBUTE = "_ldlm_order"


def nodes_of(node: nodes.NodeNG, kinds: type[_Node] | tuple[type[_Node], ...]) -> Iterator[_Node]:
    """The node and those below it that are of the given classes, in preorder."""
    root = node
    while root.parent is not None:
        root = root.parent
    order: _Order | None = root.__dict__.get(_ATTRIBUTE)
    if order is None:
        order = _Order(root)
        setattr(root, _ATTRIBUTE, order)
    found = order.ranges.get(node)
    if found is None:
        # A node that a checker made itself is not part of the tree.
        yield from node.nodes_of_class(kinds)
        return
    start, end = found
    places = order.places(kinds)
    for index in range(bisect_left(places, start), len(places)):
        if places[index] >= end:
            return
        yield order.nodes[places[index]]  # type: ignore[misc]
