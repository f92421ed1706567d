"""The walk back from an expression to those that its value may come from, through the kinds of links that a question names."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ldlm_lint.program.handles import Expr

MOST = 400
"""Expressions that one walk visits; what is behind more of them is not known."""


class Through(enum.Flag):
    """Links from a value to where it comes from."""

    NAMES = enum.auto()
    """A name that is bound to another one, or on several ways."""
    CHOICES = enum.auto()
    """Either side of ``a if t else b``, of ``and`` and ``or``."""
    PARTS = enum.auto()
    """An attribute, an item, an element or an unpacked part, of what it is taken from."""
    CONTENTS = enum.auto()
    """A list, a dictionary or a comprehension, of what is in it."""
    PARAMETERS = enum.auto()
    """A parameter, of what the known callers pass."""
    ATTRIBUTES = enum.auto()
    """An attribute of ``self``, of what the methods of the class set it to."""
    OUTSIDE = enum.auto()
    """A name of a function around, or of the module."""
    RETURNS = enum.auto()
    """The result of a function of the project, of what it returns."""


_NAMES = frozenset({"copy", "phi"})
_CHOICES = frozenset({"choice", "bool"})
_PARTS = frozenset({"attr", "item", "part", "elem", "star", "enter"})
_CONTENTS = frozenset({"seq", "comp", "star"})


def reached(start: Iterable[Expr], step: Callable[[Expr], Iterable[Expr]]) -> Iterator[Expr]:
    """Some expressions and all that a step leads to from them, nearest first."""
    todo = list(dict.fromkeys(start))
    seen = set(todo)
    for at in todo:
        yield at
        if len(seen) < MOST:
            new = [one for one in dict.fromkeys(step(at)) if one not in seen]
            seen.update(new)
            todo += new


def origins(expr: Expr, through: Through, also: Callable[[Expr], Iterable[Expr]] = lambda _: ()) -> Iterator[Expr]:
    """The expression and all those that it may be, or be a part of, nearest first; ``also`` names links of a question's own."""
    return reached([expr], lambda at: (*steps_back(at, through), *also(at)))


def steps_back(expr: Expr, through: Through) -> Iterator[Expr]:
    """What an expression may be, or be a part of, one step back."""
    kind = expr.kind
    if (kind in _NAMES and Through.NAMES in through) or (kind in _CHOICES and Through.CHOICES in through):
        yield from expr.ways
    elif kind == "param" and Through.PARAMETERS in through:
        yield from expr.given
    elif kind == "free" and Through.OUTSIDE in through:
        yield from expr.bound_outside
    elif kind == "call" and Through.RETURNS in through:
        yield from expr.results
    elif kind == "upd":
        yield from [one for one in (expr.base,) if one is not None and Through.PARTS in through]
        yield from [one for one in (expr.put,) if one is not None and Through.CONTENTS in through]
    elif kind == "map" and Through.CONTENTS in through:
        yield from expr.entries
    elif kind in _CONTENTS and Through.CONTENTS in through:
        yield from expr.operands
    elif kind in _PARTS:
        set_to = expr.set_to if Through.ATTRIBUTES in through else []
        yield from set_to
        if Through.PARTS in through and not set_to and expr.base is not None:
            yield expr.base


_FORMS = frozenset({"call", "cmp", "op", "bool", "attr", "not", "item"})


def are_alike(one: Expr, other: Expr) -> bool:
    """Whether two expressions are written alike, of the same values: two such tests have the same outcome within one
    iteration."""
    todo, seen = [(one, other)], 0
    while todo:
        mine, its = todo.pop()
        mine, its = mine.unnamed, its.unnamed
        seen += 1
        if mine == its or (mine.kind in ("const", "free") and mine.row == its.row):
            continue
        if mine.kind not in _FORMS or seen > MOST or _form(mine) != _form(its):
            return False
        todo += zip(mine.operands, its.operands, strict=True)
    return True


def _form(expr: Expr) -> tuple[object, ...]:
    """What two expressions must share besides their operands."""
    row = expr.row
    if row[0] == "call":
        return "call", len(row[2]), tuple(name for name, _ in row[3])
    if row[0] == "cmp":
        return "cmp", tuple(row[1])
    return row[0], expr.operator, expr.name, len(expr.operands)


__all__ = ["Through", "are_alike", "origins", "reached", "steps_back"]
