"""Results cached on a tree node, so that they are released with the tree."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from astroid import nodes

_Answer = TypeVar("_Answer")
_MEMO = "_ldlm_memo"


def remembered(node: nodes.NodeNG, key: tuple[object, ...], find: Callable[[], _Answer]) -> _Answer:
    """The result of ``find``, computed once per node and key; the key begins with the name of the question."""
    known: dict[tuple[object, ...], _Answer] = node.__dict__.setdefault(_MEMO, {})
    if key not in known:
        known[key] = find()
    return known[key]
