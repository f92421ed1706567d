"""Calls that switch a model between training and evaluation, and the places that compute gradients."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from ldlm_lint.shapes.outline import Outline, dotted, last_name
from ldlm_lint.shapes.owners import Owner
from ldlm_lint.shapes.walks import nodes_below

# Calls that always compute gradients.
_LEARNING = frozenset({"backward", "manual_backward", "zero_grad"})


class Switch(NamedTuple):
    """A call that certainly puts the object with a dotted name into training mode, or may put it into evaluation
    mode.
    """

    line: int
    name: str
    trains: bool


class Modes:
    """The switches of the functions of one file."""

    def __init__(self, outline: Outline) -> None:
        self._switches: dict[Owner, list[Switch]] = {}
        for owner, nodes in outline.places.near(("eval", "train")):
            for one in nodes:
                if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr in ("eval", "train"):
                    self._switches.setdefault(owner, []).extend(_switched(outline, owner, one, nodes[0]))
        self._learning = {
            owner
            for owner, nodes in outline.places.near(_LEARNING)
            if any(isinstance(one, ast.Call) and last_name(one.func) in _LEARNING for one in nodes)
        }
        self._shown: dict[ast.ClassDef | None, frozenset[str]] = {}

    def of(self, owner: Owner) -> tuple[Switch, ...]:
        """The possible switches of a function, with the name of the result."""
        return tuple(self._switches.get(owner, ()))

    def learns(self, owner: Owner) -> bool:
        """Whether a function, or one inside it, computes gradients for certain."""
        return bool(self._learning) and any(one in self._learning for one in owner.within())

    def shown(self, holder: ast.ClassDef | None) -> frozenset[str]:
        """The attributes of ``self`` that the methods of a class (including inner functions) may put into evaluation
        mode; None means the module."""
        if holder not in self._shown:
            self._shown[holder] = frozenset(self._evaluated(holder))
        return self._shown[holder]

    def _evaluated(self, holder: ast.ClassDef | None) -> Iterator[str]:
        for owner, switches in self._switches.items():
            if holder in owner.around if holder is not None else isinstance(owner.node, ast.Module):
                yield from (one.name for one in switches if not one.trains and (holder is None or one.name.startswith("self")))


def _switched(outline: Outline, owner: Owner, call: ast.Call, statement: ast.AST) -> Iterator[Switch]:
    """The possible object of a call of ``eval`` or ``train`` in a statement."""
    method = call.func
    if not isinstance(method, ast.Attribute) or len(call.args) + len(call.keywords) > 1:
        return
    if method.attr == "eval" and (call.args or call.keywords):
        return
    value = next((one.value if isinstance(one, ast.keyword) else one for one in (*call.args, *call.keywords)), None)
    trains = method.attr == "train" and (value is None or (isinstance(value, ast.Constant) and value.value is True))
    name = _receiver(method.value)
    loops = outline.own(owner, ast.For, ast.AsyncFor, ast.comprehension) if name else []
    names = [name.removesuffix(".module"), *_elements(loops, name)] if name else []
    if isinstance(statement, ast.Assign) and any(one is call for one in nodes_below(statement.value)):
        names += map(dotted, statement.targets)
    yield from (Switch(call.lineno, one, trains) for one in names if one)


def _receiver(node: ast.expr) -> str:
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        node = node.func.value
    while isinstance(node, ast.Subscript):
        node = node.value
    return dotted(node)


def _elements(loops: list[ast.For | ast.AsyncFor | ast.comprehension], name: str) -> Iterator[str]:
    for loop in loops:
        if dotted(loop.target) == name:
            parts = loop.iter.elts if isinstance(loop.iter, (ast.List, ast.Tuple)) else [loop.iter]
            yield from filter(None, map(dotted, parts))


__all__ = ["Modes", "Switch"]
