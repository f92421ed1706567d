"""The parts of calls, lists, dictionaries, signatures and assignments as written: their meaning is in the table of a
file, their text in its source."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ldlm_lint.autofix.keywords import remove_arguments
from ldlm_lint.autofix.tokens import (
    Piece,
    depths_of,
    line_of_tokens,
    pieces_of,
    signature_of,
    tokens_of,
    value_bound_by,
)
from ldlm_lint.code import Table
from ldlm_lint.code.table import Node, column_of, guards_above, line_of
from ldlm_lint.model import Edit, Span
from ldlm_lint.program.atoms import MASK
from ldlm_lint.source import Source

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode
    from ldlm_lint.program.modules import Module

_CATCHERS = frozenset({"suppress", "raises", "assertRaises", "assertRaisesRegex"})
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


def parts_of(view: ProjectCode, key: int) -> list[Part]:
    """The parts of a call, list or dictionary, by its key."""
    module = view.program.module_of(key)
    return parts_in(view.source(module), module.table, key & MASK)


def keyword_of(view: ProjectCode, call: int, name: str) -> Part | None:
    """The keyword that a call writes itself."""
    return next((one for one in parts_of(view, call) if one.name == name), None)


def written_argument(view: ProjectCode, call: int, name: str, position: int | None = None) -> Part | None:
    """What a call writes for an argument, by its name or in its place."""
    parts = parts_of(view, call)
    given = [one for one in parts if not one.name][: position + 1] if position is not None else []
    is_given = bool(given) and len(given) - 1 == position and not any(one.row[0] == "star" for one in given)
    return next((one for one in parts if one.name == name), given[-1] if is_given else None)


def written_default(view: ProjectCode, default: int, place: int, name: str) -> Part | None:
    """How a function, by its place, writes the default (key) of a parameter."""
    module = view.program.module_of(default)
    code = _code_at(view.source(module), place)
    pieces = pieces_of(signature_of(line_of_tokens(code.text)))
    return next((code.part(module.table, default & MASK, one) for one in pieces if one.name == name), None)


def value_as_written(view: ProjectCode, source: int, by: int, name: str) -> tuple[Module, Part] | None:
    """The expression of a value under a name in a call or a dictionary (``by``); a name that is bound once is replaced
    by its value."""
    module = view.program.module_of(by)
    written = keyword_of(view, by, name) if by & MASK in module.table.sites else _in_dictionary(view, by, source, name)
    if written is None or not written.is_name:
        return None if written is None else (module, written)
    row = module.nodes[source & MASK]
    bound = list(view.ask.bound_to(module, row)) if row[0] == "free" else [source]
    if len(bound) != 1:
        return module, written
    home = view.program.module_of(bound[0])
    place = bound_at(home, bound[0] & MASK, written.text)
    value = bound_in(view.source(home), home.table, bound[0] & MASK, place) if place else None
    return (module, written) if value is None else (home, value)


def entry_of(view: ProjectCode, key: int, name: str) -> Part | None:
    """The entry under a name in a dictionary."""
    module = view.program.module_of(key)
    keys = module.nodes[key & MASK][1]
    return next((part for part, one in zip(parts_of(view, key), keys, strict=False) if module.nodes[one] == ("const", name)), None)


def _in_dictionary(view: ProjectCode, by: int, source: int, name: str) -> Part | None:
    module = view.program.module_of(by)
    if module.nodes[by & MASK][0] == "map":
        return entry_of(view, by, name)
    return bound_in(view.source(module), module.table, source & MASK, module.table.places[by & MASK])


def bound_in(source: Source, table: Table, number: int, place: int) -> Part | None:
    """The value that the assignment whose target is at a place binds."""
    code = _code_at(source, place)
    tokens = value_bound_by(line_of_tokens(code.text)) if code.begins_target() else ()
    return code.part(table, number, Piece("", 0, tokens[0].start, tokens[-1].end)) if tokens else None


def constant_at(view: ProjectCode, module: Module, place: int, number: int) -> Span | None:
    """A literal number in the construct at a place: a call, a dictionary, a binding, or the parameters of a function."""
    code = _code_at(view.source(module), place)
    line = line_of_tokens(code.text)
    tokens = signature_of(line) if line and line[0].text in ("def", "async") else value_bound_by(line) if code.begins_target() else ()
    if not tokens:
        tokens = tokens_of(view.text(module, place, module.table.longest_end(place) or place)) or ()
    found = next((one for one in tokens if code.text[one.start : one.end].strip("\"'") == str(number)), None)
    return code.span(found.start, found.end) if found is not None else None


def bound_at(module: Module, number: int, name: str) -> int:
    """The place of a name that an expression is bound to; 0 if there is none."""
    events = (event for scope in module.scopes for event in scope.events)
    return next((int(event[4]) for event in events if event[0] == "bind" and event[1] == number and event[5] == name), 0)


def without_keywords(view: ProjectCode, call: int, names: Iterable[str]) -> tuple[Edit, ...]:
    """Take keywords out of a call; empty if one of them is not in it, or the text between them is too unusual."""
    wanted = set(names)
    keywords = [one.whole for one in parts_of(view, call) if one.name in wanted]
    source = view.source(view.program.module_of(call))
    return (remove_arguments(source, keywords) or ()) if len(keywords) == len(wanted) else ()


def is_caught(view: ProjectCode, call: int) -> bool:
    """Whether code around a call catches its exceptions."""
    module = view.program.module_of(call)
    site = module.table.sites[call & MASK]
    if any(begin <= site.place < end for begin, end in module.table.tries):
        return True
    around = (module.table.guards[one] for one in guards_above(module.table.guards, site.guard))
    contexts = (module.nodes[one.test] for one in around if one.kind == "with")
    return any(row[0] == "call" and module.last_name(row[1]) in _CATCHERS for row in contexts)
