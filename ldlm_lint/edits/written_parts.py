"""The parts of calls, lists, dictionaries, signatures and assignments as written: their meaning is in the table of a
file, their text in its source."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ldlm_lint.code import Table
from ldlm_lint.code.table import Node, column_of, line_of
from ldlm_lint.code.tokens import (
    Piece,
    depths_of,
    line_of_tokens,
    pieces_of,
    signature_of,
    tokens_of,
    value_bound_by,
)
from ldlm_lint.edits.keywords import remove_arguments
from ldlm_lint.model import Edit, Span
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.handles import Call, Class, Expr, Function
from ldlm_lint.program.spots import Event, Write
from ldlm_lint.source import Source

if TYPE_CHECKING:
    from ldlm_lint.program.codebase import Codebase
    from ldlm_lint.program.modules import Module

_CONSTANTS = frozenset({"True", "False", "None"})
UNPACKED = "**"
"""The name of a part that is an unpacked mapping."""


class Part(NamedTuple):
    """A part as written: its name, the expression (number and row) that its value is, the span of both, and that and the
    text of the value."""

    name: str
    number: int
    row: Node
    whole: Span
    span: Span
    text: str

    @property
    def is_name(self) -> bool:
        """Whether the value is a name only: what is known of it is written elsewhere."""
        return self.text.isidentifier() and self.text not in _CONSTANTS

    @property
    def is_constant(self) -> bool:
        """Whether the value is a literal number, text, boolean or None."""
        return bool(self.row[0] == "const") and not self.is_name

    @property
    def is_formatted(self) -> bool:
        """Whether the value is an f-string."""
        return bool(self.row[0] == "fstr")


class _Code(NamedTuple):
    """A text and the byte at which it begins in its file."""

    source: Source
    begin: int
    text: str

    def span(self, start: int, end: int) -> Span:
        """The span of some characters."""
        return self.source.span(*(self.begin + len(self.text[:at].encode(self.source.encoding)) for at in (start, end)))

    def begins_target(self) -> bool:
        """Whether a target of an assignment may begin with the text, and is not one of several."""
        line = self.source.data[: self.begin].rpartition(b"\n")[2].strip()
        return not line or line.endswith((b"=", b";", b":"))

    def part(self, table: Table, number: int, piece: Piece, name: str = "") -> Part:
        """An expression that is written as a piece of the text, without parentheses around it."""
        span = self.span(piece.value, piece.end)
        own = span_in(self.source, table, number) if table.places[number] else span
        span = own if span.start <= own.start and own.end <= span.end else span
        return Part(name, number, table.nodes[number], self.span(piece.start, piece.end), span, self.source.slice(span))


def _code_at(source: Source, place: int) -> _Code:
    """The code from a place to the end of its file."""
    begin = source.offset(line_of(place), column_of(place))
    return _Code(source, begin, source.data[begin:].decode(source.encoding, errors="replace"))


def span_in(source: Source, table: Table, number: int) -> Span:
    """The span of an expression."""
    place, end = table.places[number], table.end(number)
    return source.span_of(line_of(place), column_of(place), line_of(end), column_of(end))


def parts_in(source: Source, table: Table, number: int) -> list[Part]:
    """The arguments of a call, the elements of a list, the entries of a dictionary; empty for unusual texts."""
    row, span = table.nodes[number], span_in(source, table, number)
    code = _Code(source, span.start, source.slice(span))
    tokens = tokens_of(code.text) or []
    # A tuple without parentheses may end with those of its last element.
    is_whole = row[0] == "call" or 0 not in depths_of(tokens)[1:-1]
    pieces = pieces_of(tokens if is_whole else (), ":" if row[0] == "map" else "=")
    named = [(piece.name or UNPACKED * code.text.startswith(UNPACKED, piece.start), piece) for piece in pieces]
    numbers = _numbers(row, [name for name, _ in named])
    return [code.part(table, one, piece, name) for (name, piece), one in zip(named, numbers, strict=False)]


def _numbers(row: Node, names: Sequence[str]) -> Sequence[int]:
    """The expressions of the parts with these names, if these are the parts that a row has."""
    if row[0] == "call" and names.count("") == len(row[2]) and len(names) == len(row[2]) + len(row[3]):
        positional, named = iter(row[2]), iter(row[3])
        return [next(named)[1] if name else next(positional) for name in names]
    values: Sequence[int] = row[2] if row[0] in ("seq", "map") else ()
    return values if len(values) == len(names) else ()


def parts_of(expr: Expr) -> list[Part]:
    """The parts of a call, list or dictionary; none of a call that others make: ``Thread(target=torch.save, args=…)``."""
    if expr.key & MASK >= len(expr.module.table.ends):
        return []
    return parts_in(expr.code.source(expr.module), expr.module.table, expr.key & MASK)


def keyword_of(call: Expr, name: str) -> Part | None:
    """The keyword that a call writes itself."""
    return next((one for one in parts_of(call) if one.name == name), None)


def written_argument(call: Call, name: str, position: int | None = None) -> Part | None:
    """What a call writes for an argument, by its name or in its place."""
    parts = parts_of(call)
    given = [one for one in parts if not one.name][: position + 1] if position is not None else []
    is_given = bool(given) and len(given) - 1 == position and not any(one.row[0] == "star" for one in given)
    return next((one for one in parts if one.name == name), given[-1] if is_given else None)


def written_default(default: Expr, place: int, name: str) -> Part | None:
    """How a function, by its place, writes the default of a parameter."""
    code = _code_at(default.code.source(default.module), place)
    pieces = pieces_of(signature_of(line_of_tokens(code.text)))
    return next((code.part(default.module.table, default.key & MASK, one) for one in pieces if one.name == name), None)


def value_as_written(value: Expr, by: Expr, name: str) -> tuple[Module, Part] | None:
    """The expression of a value under a name in a call or a dictionary (``by``); a name that is bound once is replaced
    by its value."""
    written = entry_as_written(value, by, name)
    if written is None or not written.is_name:
        return None if written is None else (by.module, written)
    bound = value.bound_outside if value.kind == "free" else [value]
    if len(bound) != 1:
        return by.module, written
    home = bound[0].module
    place = bound_at(bound[0], written.text)
    found = bound_in(value.code.source(home), home.table, bound[0].key & MASK, place) if place else None
    return (by.module, written) if found is None else (home, found)


def entry_of(mapping: Expr, name: str) -> Part | None:
    """The entry under a name in a dictionary."""
    keys = mapping.operands[: len(mapping.operands) // 2]
    return next((part for part, key in zip(parts_of(mapping), keys, strict=False) if key.constant == name), None)


def entry_as_written(value: Expr, by: Expr, name: str) -> Part | None:
    """A value under a name in a call, a dictionary, or an assignment to an item (``by``)."""
    if isinstance(by, Call):
        return keyword_of(by, name)
    if by.kind == "map":
        return entry_of(by, name)
    return bound_in(by.code.source(by.module), by.module.table, value.key & MASK, by.place)


def bound_in(source: Source, table: Table, number: int, place: int) -> Part | None:
    """The value that the assignment whose target is at a place binds."""
    code = _code_at(source, place)
    tokens = value_bound_by(line_of_tokens(code.text)) if code.begins_target() else ()
    return code.part(table, number, Piece("", 0, tokens[0].start, tokens[-1].end)) if tokens else None


def bound_by(event: Event) -> Part | None:
    """The value that a name is bound to, where an assignment binds it."""
    expr = event.expr
    return bound_in(expr.code.source(expr.module), expr.module.table, expr.key & MASK, event.spot.place)


def set_by(write: Write) -> Part | None:
    """The value that an attribute is set to, where an assignment sets it."""
    value = write.value
    return bound_in(value.code.source(value.module), value.module.table, value.key & MASK, write.spot.place)


def stored_by(store: Expr) -> Part | None:
    """The value that ``x[key] = value`` stores."""
    put = store.put
    return bound_in(store.code.source(store.module), store.module.table, put.key & MASK, store.place) if put is not None else None


def mention_in(taker: Expr | Function | Class | Event, value: Expr) -> Span | None:
    """Where an expression, the line of something that happens, a signature or the line of a class names a value that is held by
    a variable; None if none of these does."""
    names = {value.name} if value.kind == "free" else {event.name for event in value.events if event.kind == "bind"}
    if isinstance(taker, Expr):
        place, tokens = taker.place, (tokens_of(taker.text) or []) if taker.place else []
    else:
        spot = taker.spot if isinstance(taker, Event) else (taker if isinstance(taker, Function) else taker.body).spot
        place = spot.place
        tokens = line_of_tokens(_code_at(value.code.source(value.module), place).text)
    here = _code_at(value.code.source(value.module), place)
    around = zip(["", *(one.text for one in tokens)], tokens, [*(one.text for one in tokens[1:]), ""], strict=False)
    found = (token for before, token, behind in around if token.text in names and before != "." and behind != "=")
    return next((here.span(token.start, token.end) for token in found), None)


def constant_at(code: Codebase, module: Module, place: int, number: int) -> Span | None:
    """A literal number in the construct at a place: a call, a dictionary, a binding, or the parameters of a function."""
    here = _code_at(code.source(module), place)
    line = line_of_tokens(here.text)
    tokens = signature_of(line) if line and line[0].text in ("def", "async") else value_bound_by(line) if here.begins_target() else ()
    if not tokens:
        tokens = tokens_of(code.text(module, place, module.table.longest_end(place) or place)) or ()
    found = next((one for one in tokens if here.text[one.start : one.end].strip("\"'") == str(number)), None)
    return here.span(found.start, found.end) if found is not None else None


def bound_at(expr: Expr, name: str) -> int:
    """The place of a name that an expression is bound to; 0 if there is none."""
    return next((event.spot.place for event in expr.events if event.kind == "bind" and event.name == name), 0)


def without_keywords(call: Call, names: Iterable[str]) -> tuple[Edit, ...]:
    """Take keywords out of a call; empty if one of them is not in it, or the text between them is too unusual."""
    wanted = set(names)
    keywords = [one.whole for one in parts_of(call) if one.name in wanted]
    return (remove_arguments(call.code.source(call.module), keywords) or ()) if len(keywords) == len(wanted) else ()
