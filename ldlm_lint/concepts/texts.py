"""The exact text of an expression: joined lists, formatted strings, what functions return, comprehensions over
mappings.

The values of a program keep short texts with gaps; here the value of an environment variable is known completely or not
at all.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from ldlm_lint.concepts.text_parts import Context, Place, Places
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.calls import UNKNOWN
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Call, expression

if TYPE_CHECKING:
    from ldlm_lint.code.table import Node
    from ldlm_lint.program.handles import Expr, Function
    from ldlm_lint.program.modules import Module

_MOST_TEXTS = 8
"""Texts that one expression may be above which it is unknown."""
_MOST_READS = 600
"""Expressions that are read for one answer."""
_MOST_PARTS = 60
"""Texts that are added up in a row."""
_PERCENT = ("%s", "%d")


_MOST_CALLERS = 20
"""Calls of one function that are looked at."""


class Given(NamedTuple):
    """A case in which an expression is evaluated: for an element of a loop, or for a call of its function."""

    context: Context
    call: Call | None = None


class Texts(Concept):
    """Answers for expressions."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self.places = Places(code.ask)
        self._reads = 0

    def of(self, key: int, context: Context | None = None) -> tuple[str, ...]:
        """All possible texts of an expression, numbers as formatted; empty if one of them is unknown."""
        self._reads = 0
        return tuple(dict.fromkeys(self._of(Place(key, context)) or ()))

    def known(self, expr: Expr, given: Given | None = None) -> tuple[str, ...]:
        """All possible texts of an expression, in all cases or in one; empty if one of them is unknown."""
        return self.of(expr.key, given.context if given is not None else None)

    def of_argument(self, expr: Expr, makers: Callable[[Expr], bool]) -> tuple[str, ...]:
        """The texts of an expression, or of what one of some functions makes it from: ``"cuda"`` of ``torch.device("cuda")``."""
        place = self.places.resolved(Place(expr.key))
        made = expression(self.code, place.key) if place is not None else None
        if place is not None and isinstance(made, Call) and made.positional and makers(made.callee):
            place = Place(made.positional[0].key, place.context)
        return self.of(place.key, place.context) if place is not None else ()

    def entries(self, mapping: Expr) -> dict[str, tuple[str, ...]]:
        """The texts of a mapping by their keys; empty if it is unknown."""
        found = self.places.entries(Place(mapping.key)) or {}
        return {name: self.of(value.key, value.context) for name, (_, value) in found.items()}

    def cases(self, expr: Expr, function: Function) -> Iterator[Given]:
        """The iterations of the loop that gives an expression, or else the calls of the function around it."""
        taken = expr.base if expr.kind == "part" else expr
        if taken is not None and taken.kind == "elem" and taken.base is not None:
            for one in self.places.rounds(Place(taken.base.key)) or ():
                yield Given(Context(element=taken.key, items=one))
        elif not function.is_module:
            edges = self.program.callers(function.key)
            if len(edges) <= _MOST_CALLERS:
                yield from (Given(Context(function.key, edge.call, edge.how), Call(self.code, edge.call)) for edge in edges if edge.how != UNKNOWN)

    def _of(self, place: Place | None) -> list[str] | None:
        self._reads += 1
        place = None if place is None or self._reads > _MOST_READS else self.places.resolved(place)
        if place is None:
            return None
        module = self.places.program.module_of(place.key)
        row = module.nodes[place.key & MASK]
        reader = {
            "const": self._constant,
            "fstr": self._formatted,
            "op": self._operation,
            "call": self._call,
            "phi": self._one_of,
            "choice": self._one_of,
        }.get(row[0], self._known)
        found = reader(module, row, place)
        return found if found is not None and 0 < len(found) <= _MOST_TEXTS else None

    def _constant(self, module: Module, row: Node, place: Place) -> list[str] | None:
        return [str(row[1])]

    def _one_of(self, module: Module, row: Node, place: Place) -> list[str] | None:
        ways = [self._of(place.beside(one)) for one in (row[1] if row[0] == "phi" else row[2:])]
        return None if any(way is None for way in ways) else [text for way in ways for text in way or ()]

    def _known(self, module: Module, row: Node, place: Place) -> list[str] | None:
        """The values from the program, if they are complete."""
        if row[0] == "param":
            return None
        only = self.ask.meaning(place.key).only
        whole = isinstance(only, str) and "*" not in only
        return [str(only)] if whole or (isinstance(only, (int, float)) and only is not ...) else None

    def _formatted(self, module: Module, row: Node, place: Place) -> list[str] | None:
        return self._joined("", [self._of(place.beside(one)) for one in row[1]]) if row[2] else None

    def _operation(self, module: Module, row: Node, place: Place) -> list[str] | None:
        if row[1] == "Add":
            parts = self._added(module, place)
            if parts is None:
                return None
            # A sum of numbers is not text that is put together.
            if any(self._is_number(one) for one in map(self.places.resolved, parts) if one is not None):
                return self._known(module, row, place)
            return self._joined("", [self._of(one) for one in parts])
        if row[1] == "Mod" and module.nodes[row[2]][0] == "const" and isinstance(module.nodes[row[2]][1], str):
            return self._percent(module, module.nodes[row[2]][1], row[3], place)
        return self._known(module, row, place)

    @staticmethod
    def _added(module: Module, place: Place) -> list[Place] | None:
        """The operands of a chain of additions; None of a longer one."""
        found: list[Place] = []
        row = module.nodes[place.key & MASK]
        while row[:2] == ("op", "Add") and len(found) < _MOST_PARTS:
            found.append(place.beside(row[3]))
            place = place.beside(row[2])
            row = module.nodes[place.key & MASK]
        return [place, *reversed(found)] if len(found) < _MOST_PARTS else None

    def _is_number(self, place: Place) -> bool:
        row = self.places.row(place)
        return row[0] == "const" and not isinstance(row[1], str)

    def _percent(self, module: Module, text: str, given: int, place: Place) -> list[str] | None:
        fields = module.nodes[given][2] if module.nodes[given][:2] == ("seq", "Tuple") else (given,)
        pieces = _split(text, _PERCENT)
        if len(pieces) != len(fields) + 1 or any("%" in piece for piece in pieces):
            return None
        return self._between(pieces, [self._of(place.beside(one)) for one in fields])

    def _call(self, module: Module, row: Node, place: Place) -> list[str] | None:
        function, args, keywords = module.nodes[row[1]], row[2], row[3]
        if function[0] == "free" and function[2] == "str" and len(args) == 1 and not keywords:
            return self._of(place.beside(args[0]))
        if function[0] == "attr" and not keywords and function[2] in ("join", "format"):
            base = self._of(place.beside(function[1]))
            if base is not None and len(base) == 1:
                return self._join(base[0], args, place) if function[2] == "join" else self._format(base[0], args, place)
        return self._known(module, row, place)

    def _join(self, between: str, args: tuple[int, ...], place: Place) -> list[str] | None:
        elements = self.places.elements(place.beside(args[0]), place) if len(args) == 1 else None
        return None if elements is None else self._joined(between, [self._of(one) for one in elements])

    def _format(self, text: str, args: tuple[int, ...], place: Place) -> list[str] | None:
        pieces = text.split("{}")
        if len(pieces) != len(args) + 1 or any("{" in piece or "}" in piece for piece in pieces):
            return None
        return self._between(pieces, [self._of(place.beside(one)) for one in args])

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


def _split(text: str, marks: tuple[str, ...]) -> list[str]:
    return list(_pieces(text, marks))


def _pieces(text: str, marks: tuple[str, ...]) -> Iterator[str]:
    start = 0
    for at in range(len(text)):
        if text[at : at + 2] in marks:
            yield text[start:at]
            start = at + 2
    yield text[start:]


__all__ = ["Given", "Texts"]
