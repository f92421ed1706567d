"""The exact text of an expression: joined lists, formatted strings, what functions return, comprehensions over
mappings.

The values of a program keep short texts with gaps; here the value of an environment variable is known completely or not
at all.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from string import Formatter
from typing import NamedTuple

from ldlm_lint.budget import deep
from ldlm_lint.concepts.text_parts import Context, Place, Places
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Call, Expr, Function

_MOST_TEXTS = 8
"""Texts that one expression may be above which it is unknown."""
_MOST_READS = 600
"""Expressions that are read for one answer."""
_MOST_PARTS = 60
"""Texts that are added up in a row."""
_MOST_CALLERS = 20
"""Calls of one function that are looked at."""
_PERCENT = ("%s", "%d")


class Given(NamedTuple):
    """A case in which an expression is evaluated: for an element of a loop, or for a call of its function."""

    context: Context
    call: Call | None = None


class Texts(Concept):
    """Answers for expressions."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self.places = code[Places]
        self._reads = 0

    def known(self, expr: Expr, given: Given | None = None) -> tuple[str, ...]:
        """All possible texts of an expression, numbers as formatted, in all cases or in one; empty if one is unknown."""
        return self.at(Place(expr, given.context if given is not None else None))

    def at(self, place: Place) -> tuple[str, ...]:
        """The same for an expression in its context."""
        self._reads = 0
        with deep():
            return tuple(dict.fromkeys(self._of(place) or ()))

    def of_argument(self, expr: Expr, makers: Callable[[Expr], bool]) -> tuple[str, ...]:
        """The texts of an expression, or of what one of some functions makes it from: ``"cuda"`` of ``torch.device("cuda")``."""
        place = self.places.resolved(Place(expr))
        if place is not None and isinstance(place.expr, Call) and place.expr.positional and makers(place.expr.callee):
            place = place.beside(place.expr.positional[0])
        return self.at(place) if place is not None else ()

    def entries(self, mapping: Expr) -> dict[str, tuple[str, ...]]:
        """The texts of a mapping by their keys; empty if it is unknown."""
        return {name: self.at(value) for name, (_, value) in (self.places.entries(Place(mapping)) or {}).items()}

    def cases(self, expr: Expr, function: Function) -> Iterator[Given]:
        """The iterations of the loop that gives an expression, or else the calls of the function around it."""
        taken = expr.base if expr.kind == "part" else expr
        if taken is not None and taken.kind == "elem" and taken.base is not None:
            for one in self.places.rounds(Place(taken.base)) or ():
                yield Given(Context(element=taken, items=one))
        elif not function.is_module and len(function.callers) <= _MOST_CALLERS and not function.has_unknown_callers:
            yield from (Given(Context(function, call), call) for call in function.callers)

    def _of(self, place: Place | None) -> list[str] | None:
        self._reads += 1
        place = None if place is None or self._reads > _MOST_READS else self.places.resolved(place)
        if place is None:
            return None
        found = self._read(place)
        return found if found is not None and 0 < len(found) <= _MOST_TEXTS else None

    def _read(self, place: Place) -> list[str] | None:
        expr = place.expr
        if expr.kind == "const":
            return [str(expr.constant)]
        if expr.kind == "fstr":
            return self._joined("", [self._of(place.beside(one)) for one in expr.operands]) if expr.is_plain_text else None
        if expr.kind == "op":
            return self._operation(place)
        if isinstance(expr, Call):
            return self._call(place, expr)
        if expr.kind in ("phi", "choice"):
            ways = [self._of(place.beside(one)) for one in expr.ways]
            return None if any(way is None for way in ways) else [text for way in ways for text in way or ()]
        return _whole(expr)

    def _operation(self, place: Place) -> list[str] | None:
        expr = place.expr
        if expr.operator == "Add":
            parts = _added(place)
            if parts is None:
                return None
            # A sum of numbers is not text that is put together.
            written = (one for one in map(self.places.resolved, parts) if one is not None)
            if any(one.expr.kind == "const" and not isinstance(one.expr.constant, str) for one in written):
                return _whole(expr)
            return self._joined("", [self._of(one) for one in parts])
        left, right = expr.operands
        if expr.operator == "Mod" and isinstance(left.constant, str):
            fields, pieces = right.operands if right.is_tuple else [right], list(_pieces(left.constant, _PERCENT))
            if len(pieces) != len(fields) + 1 or any("%" in piece for piece in pieces):
                return None
            return self._between(pieces, [self._of(place.beside(one)) for one in fields])
        return _whole(expr)

    def _call(self, place: Place, call: Call) -> list[str] | None:
        args = call.positional
        if call.callee.kind == "free" and call.called_name == "str" and len(args) == len(call.arguments) == 1:
            return self._of(place.beside(args[0]))
        if call.receiver is not None and call.called_name in ("join", "format"):
            base = self._of(place.beside(call.receiver))
            if base is not None and len(base) == 1:
                return self._join(base[0], place, call) if call.called_name == "join" else self._format(base[0], place, call)
        return _whole(call)

    def _join(self, between: str, place: Place, call: Call) -> list[str] | None:
        elements = self.places.elements(place.beside(call.positional[0]), call) if len(call.positional) == 1 else None
        return None if elements is None else self._joined(between, [self._of(one) for one in elements])

    def _format(self, text: str, place: Place, call: Call) -> list[str] | None:
        given = {**{str(nth): one for nth, one in enumerate(call.positional)}, **dict(call.keywords)}
        pieces, fields = [""], list[Expr]()
        try:
            parts = list(Formatter().parse(text))
        except ValueError:
            return None
        for written, name, form, conversion in parts:
            pieces[-1] += written
            if name is not None:
                value = given.get(name or str(len(fields)))
                if value is None or form or conversion:
                    return None
                fields.append(value)
                pieces.append("")
        return self._between(pieces, [self._of(place.beside(one)) for one in fields])

    def _between(self, pieces: list[str], fields: list[list[str] | None]) -> list[str] | None:
        parts: list[list[str] | None] = [[pieces[0]]]
        for field, piece in zip(fields, pieces[1:], strict=True):
            parts += [field, [piece]]
        return self._joined("", parts)

    @staticmethod
    def _joined(between: str, parts: list[list[str] | None]) -> list[str] | None:
        """The ways to put one text of each part together; if two parts have several, one may depend on the other."""
        if any(not part for part in parts) or sum(len(part or ()) > 1 for part in parts) > 1:
            return None
        return [between.join(one) for one in itertools.product(*(part or () for part in parts))]


def _whole(expr: Expr) -> list[str] | None:
    """The value from the program, if it is known to the last character."""
    only = ... if expr.kind == "param" else expr.may_be().only
    is_whole = isinstance(only, str) and "*" not in only
    return [str(only)] if is_whole or isinstance(only, (int, float)) else None


def _added(place: Place) -> list[Place] | None:
    """The operands of a chain of additions; None of a longer one."""
    found: list[Place] = []
    expr = place.expr
    while expr.operator == "Add" and expr.kind == "op" and len(found) < _MOST_PARTS:
        left, right = expr.operands
        found.append(place.beside(right))
        expr = left
    return [place.beside(expr), *reversed(found)] if len(found) < _MOST_PARTS else None


def _pieces(text: str, marks: tuple[str, ...]) -> Iterator[str]:
    start = 0
    for at in range(len(text)):
        if text[at : at + 2] in marks:
            yield text[start:at]
            start = at + 2
    yield text[start:]


__all__ = ["Given", "Texts"]
