"""Answers that rest with a node of a tree, so that they go when the tree goes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from astroid import nodes

_Answer = TypeVar("_Answer")
_MEMO = "_ldlm_memo"


def remembered(node: nodes.NodeNG, key: tuple[object, ...], find: Callable[[], _Answer]) -> _Answer:
    """What ``find`` gives, asked once for a node and a key; the key begins with the name of the question."""
    known: dict[tuple[object, ...], _Answer] = node.__dict__.setdefault(_MEMO, {})
    if key not in known:
        known[key] = find()
    return known[key]
