"""All nodes of a kind below a node, from one list per tree: walking subtrees repeatedly took a third of a run.

`nodes_of` returns the same as astroid's ``nodes_of_class``, in the same order, without walking the tree: every node
stores the range of its subtree in the tree's preorder.
"""

from __future__ import annotations

import operator
import weakref
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, TypeVar

from astroid import nodes

_Node = TypeVar("_Node", bound=nodes.NodeNG)
_Kinds = type | tuple[type, ...]
# Up to this many nodes a linear walk is faster than a look-up of places.
_FEW = 24
# Kinds of statements that hold no others.
_SIMPLE = frozenset({
    *("AnnAssign", "Assert", "Assign", "AugAssign", "Break", "Continue", "Delete", "Expr", "Global", "Import"),
    *("ImportFrom", "Nonlocal", "Pass", "Raise", "Return"),
})


class Preorder:
    """The preorder of a tree: its nodes, and the places of each class of nodes.

    Each node stores its place and the end of its subtree, ``_ldlm_start`` and ``_ldlm_end``; a light tree comes with
    them.
    """

    def __init__(self, root: nodes.NodeNG) -> None:
        self.nodes: list[nodes.NodeNG] = root.__dict__.pop("_ldlm_preorder", None) or _preorder(root)
        places: dict[type, list[int]] = defaultdict(list)
        for place, node in enumerate(self.nodes):
            places[node.__class__].append(place)
        self._places = dict(places)
        self._of: dict[_Kinds, list[int]] = {}
        self._classes: dict[_Kinds, frozenset[Any]] = {}

    @property
    def kinds(self) -> list[type[Any]]:
        """The classes of nodes that the tree has."""
        return list(self._places)

    def places(self, kinds: _Kinds) -> list[int]:
        """The places of the nodes of these classes and subclasses, in order."""
        found = self._of.get(kinds)
        if found is None:
            wanted = [self._places[kind] for kind in self.classes(kinds)]
            found = wanted[0] if len(wanted) == 1 else sorted(chain.from_iterable(wanted))
            self._of[kinds] = found
        return found

    def classes(self, kinds: _Kinds) -> frozenset[Any]:
        """The node classes in the tree that belong to these kinds."""
        found = self._classes.get(kinds)
        if found is None:
            found = self._classes[kinds] = frozenset(kind for kind in self._places if issubclass(kind, kinds))
        return found


def _no_tree() -> None:
    """The result of a reference to a released tree."""


_last: Callable[[], Preorder | None] = _no_tree


def _holds(order: Preorder, place: int, node: nodes.NodeNG) -> bool:
    """Whether a node is at a place of a tree."""
    return 0 <= place < len(order.nodes) and order.nodes[place] is node


def _preorder(root: nodes.NodeNG) -> list[nodes.NodeNG]:
    """The nodes of a tree, marked with their places. Iterative: generated code nests deeper than Python's own stack."""
    order: list[nodes.NodeNG] = []
    waiting: list[tuple[nodes.NodeNG, bool]] = [(root, False)]
    while waiting:
        node, done = waiting.pop()
        if done:
            node._ldlm_end = len(order)
            continue
        node._ldlm_start = len(order)
        order.append(node)
        waiting.append((node, True))
        waiting.extend((child, False) for child in reversed(list(node.get_children())))
    return order


def preorder(node: nodes.NodeNG) -> Preorder:
    """The preorder of the tree that a node is part of; cached on its root, so that it is released with the tree."""
    global _last
    # Most questions are about the tree of the last one, and the way to the root is long.
    known = _last()
    if known is not None and _holds(known, node.__dict__.get("_ldlm_start", -1), node):
        return known
    root = node
    while root.parent is not None:
        root = root.parent
    order: Preorder | None = root.__dict__.get("_ldlm_order")
    if order is None:
        order = root._ldlm_order = Preorder(root)
    _last = weakref.ref(order)
    return order


def depth(root: nodes.NodeNG) -> int:
    """The maximum depth of a tree, in nodes."""
    depths = [1]
    for node in preorder(root).nodes[1:]:
        depths.append(depths[node.parent._ldlm_start] + 1)
    return max(depths)


def depth_at_most(root: nodes.NodeNG) -> int:
    """An upper bound of `depth` from the statements alone: their nesting, and their size."""
    order = preorder(root)
    places = order.places(tuple(kind for kind in order.kinds if kind.is_statement))
    ends: list[int] = []
    deepest = 0
    # A node without statements is one level below the last one with statements.
    for place in order.places(tuple(kind for kind in order.kinds if kind.is_statement and kind.__name__ not in _SIMPLE)):
        while ends and ends[-1] <= place:
            ends.pop()
        ends.append(order.nodes[place]._ldlm_end)
        deepest = max(deepest, len(ends))
    widest = max(map(operator.sub, [*places, len(order.nodes)], [0, *places]))
    # Between a statement and its parent statement there may be a case of a match.
    return 2 * (deepest + 1) + widest


def release(root: nodes.NodeNG) -> None:
    """Release a tree that is no longer needed.

    Its nodes reference their parents, so Python would free them only in a cycle collection, which it does rarely while
    trees are built: those of a large repository would all be in memory together.
    """
    for node in preorder(root).nodes:
        node.__dict__.clear()


def nodes_of(node: nodes.NodeNG, kinds: type[_Node] | tuple[type[_Node], ...]) -> Iterator[_Node]:
    """The node and those below it that are of the given classes, in preorder."""
    marks = node.__dict__
    start = marks.get("_ldlm_start", -1)
    order = _last()
    if order is None or not _holds(order, start, node):
        order = preorder(node)
        start = marks.get("_ldlm_start", -1)
        if not _holds(order, start, node):
            # A node created by a checker is not part of the tree.
            return node.nodes_of_class(kinds)
    end = marks["_ldlm_end"]
    if end - start < _FEW:
        classes = order.classes(kinds)
        return (one for one in order.nodes[start:end] if one.__class__ in classes)
    places = order.places(kinds)
    first = bisect_left(places, start)
    return map(order.nodes.__getitem__, places[first : bisect_left(places, end, first)])
