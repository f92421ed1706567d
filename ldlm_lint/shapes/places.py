"""Where the words of a file are in its tree: the statements on the lines of a word, found without walking the others.

A statement is one piece with its expressions; for a compound one only its head: the test of an ``if``, the arguments of
a function. Pieces follow one another as the lines do, so that a line leads to its pieces by bisection, and a condition
that depends on a word checks a few of them instead of ten thousand nodes.
"""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections.abc import Collection, Container, Iterable, Iterator
from functools import cached_property
from itertools import accumulate
from typing import Any, Generic, TypeVar

from ldlm_lint.patterns import lazily
from ldlm_lint.shapes.walks import FIELDS, nodes_below

BLOCKS: dict[type[ast.AST], tuple[str, ...]] = {
    **dict.fromkeys((ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.With, ast.AsyncWith, ast.ExceptHandler), ("body",)),
    **dict.fromkeys((ast.For, ast.AsyncFor, ast.While, ast.If), ("body", "orelse")),
    ast.Try: ("body", "handlers", "orelse", "finalbody"),
    ast.Match: ("cases",),
    ast.match_case: ("body",),
}
"""The fields of nodes that hold statements, in the order of their lines."""
if hasattr(ast, "TryStar"):
    BLOCKS[ast.TryStar] = BLOCKS[ast.Try]

_WORD = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
# A number may directly precede it.
_FOR = lazily(rb"for(?!\w)(?<![A-Za-z_]for)")
# So many words are looked for one by one; a search of the text for each of more would take it too long.
_MANY = 200
_RUN = lazily(rb"\w+")
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_Owner = TypeVar("_Owner")
Lines = tuple[int, int]
"""A first and a last line."""


class Places(Generic[_Owner]):
    """The pieces of one file; ``pieces`` and their ``owners`` are in the order of the text ``data``."""

    def __init__(self, data: bytes, pieces: list[Any], owners: list[_Owner]) -> None:
        self._data = data
        self._pieces = pieces
        self._owners = owners
        self._lines: dict[tuple[str, bool], list[int]] = {}
        self._nodes: dict[int, list[ast.AST]] = {}

    def near(
        self, words: Iterable[str], *, parts: bool = False, within: Container[_Owner] | None = None
    ) -> Iterator[tuple[_Owner, list[Any]]]:
        """The nodes of each piece with one of these words on its lines, the statement first, and its owner.

        With ``parts`` the words may be parts of longer ones; only pieces ``within`` these functions are checked.
        """
        return self.on(self.lines_with(words, parts=parts), within)

    def on(self, lines: Iterable[int], within: Container[_Owner] | None = None) -> Iterator[tuple[_Owner, list[Any]]]:
        """As `near`, for the pieces on some lines, which are in order."""
        for at in self._at(lines):
            if within is None or self._owners[at] in within:
                yield self._owners[at], self._nodes_of(at)

    @cached_property
    def _fors(self) -> list[int]:
        """The numbers of the pieces with the word ``for``."""
        lines = {bisect_right(self._starts, one.start()) for one in _FOR.finditer(self._data)}
        return list(self._at(sorted(lines)))

    @cached_property
    def looping(self) -> set[_Owner]:
        """The owners with a loop, or a loop keyword in an expression."""
        found = {owner for owner, piece in zip(self._owners, self._pieces, strict=True) if piece.__class__ is ast.While}
        return found.union(self._owners[at] for at in self._fors)

    @cached_property
    def loops(self) -> list[Lines]:
        """The lines of the statements that are loops, or contain one in an expression, without nested ones."""
        fors = (self._pieces[at] for at in self._fors)
        whiles = (one for one in self._pieces if one.__class__ is ast.While)
        found: list[Lines] = []
        for first, last in sorted(
            (first_line(one), (one.end_lineno or 0) if one.__class__ in _LOOPS else _last_line(one)) for one in (*fors, *whiles)
        ):
            if not found or last > found[-1][1]:
                found.append((first, last))
        return found

    def text(self, lines: Lines) -> bytes:
        """The text of some lines."""
        return self._data[slice(*self._bounds(lines))]

    def lines_in(self, lines: Lines, words: Collection[str]) -> set[int]:
        """The lines with one of these words, at least as parts of longer ones; for many words all lines."""
        start, end = self._bounds(lines)
        if len(words) > _MANY:
            return set(range(lines[0], lines[1] + 1))
        return {line for word in words for line in self._find(word.encode(), True, start, end)}

    def _bounds(self, lines: Lines) -> tuple[int, int]:
        first, last = lines
        return self._starts[first - 1], self._starts[last] if last < len(self._starts) else len(self._data)

    def statements(self, owner: _Owner) -> list[Any]:
        """The statements of an owner, including compound ones, in the order of the text."""
        return self._statements.get(owner, [])

    @cached_property
    def _statements(self) -> dict[_Owner, list[ast.AST]]:
        found: dict[_Owner, list[ast.AST]] = {}
        for owner, piece in zip(self._owners, self._pieces, strict=True):
            found.setdefault(owner, []).append(piece)
        return found

    def lines_with(self, words: Iterable[str], *, parts: bool = False) -> list[int]:
        """The lines with one of these words, in order; counted from one, comments included."""
        found = [lines for word in words if (lines := self._lines_with(word, parts))]
        return found[0] if len(found) == 1 else sorted({line for lines in found for line in lines})

    def _lines_with(self, word: str, parts: bool) -> list[int]:
        key = (word, parts)
        if key not in self._lines:
            if len(self._lines) < _MANY or parts:
                self._lines[key] = list(self._find(word.encode(), parts))
            else:
                self._lines[key] = self._words.get(word.encode(), [])
        return self._lines[key]

    @cached_property
    def _words(self) -> dict[bytes, list[int]]:
        """The lines of every word of the file."""
        found: dict[bytes, list[int]] = {}
        for one in _RUN.finditer(self._data):
            lines, line = found.setdefault(one[0], []), bisect_right(self._starts, one.start())
            if not lines or lines[-1] != line:
                lines.append(line)
        return found

    def _find(self, word: bytes, parts: bool, start: int = 0, end: int | None = None) -> Iterator[int]:
        data, size = self._data, len(word)
        end = len(data) if end is None else end
        at = data.find(word, start, end) if word else -1
        while at >= 0:
            after = at + size
            if parts or ((not at or data[at - 1] not in _WORD) and (after == len(data) or data[after] not in _WORD)):
                line = bisect_right(self._starts, at)
                yield line
                at = data.find(word, self._starts[line], end) if line < len(self._starts) else -1
            else:
                at = data.find(word, after, end)

    @cached_property
    def _starts(self) -> list[int]:
        """Where each line begins, split as in Python."""
        return list(accumulate(map(len, self._data.splitlines(keepends=True)[:-1]), initial=0))

    @cached_property
    def _firsts(self) -> list[int]:
        decorated = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.match_case)
        return [first_line(one) if one.__class__ in decorated else one.lineno for one in self._pieces]

    def _at(self, lines: Iterable[int]) -> Iterator[int]:
        """The numbers of the pieces on these lines; with two on one line both count."""
        firsts, done = self._firsts, -1
        for line in lines:
            at = end = bisect_right(firsts, line)
            while at > done + 1 and (firsts[at - 1] == line or _last_line(self._pieces[at - 1]) >= line):
                at -= 1
            yield from range(at, end)
            done = max(done, end - 1)

    def _nodes_of(self, at: int) -> list[ast.AST]:
        found = self._nodes.get(at)
        if found is None:
            piece = self._pieces[at]
            found = self._nodes[at] = _head(piece) if piece.__class__ in BLOCKS else nodes_below(piece)
        return found


def _head(piece: ast.AST) -> list[ast.AST]:
    """A compound statement, and its parts besides the inner statements."""
    found, blocks = [piece], BLOCKS[piece.__class__]
    for name in FIELDS[piece.__class__]:
        value = getattr(piece, name, None) if name not in blocks else None
        for one in value if isinstance(value, list) else [value]:
            if one is not None:
                found += nodes_below(one)
    return found


def first_line(node: Any) -> int:
    """The first line of a statement, that of its first decorator if it has one."""
    decorators = getattr(node, "decorator_list", None)
    if decorators:
        return min(node.lineno, *(one.lineno for one in decorators))
    return node.pattern.lineno if isinstance(node, ast.match_case) else node.lineno


def _last_line(piece: Any) -> int:
    """The last line of a piece: a head ends before the first inner statement."""
    blocks = BLOCKS.get(piece.__class__)
    if blocks is None:
        return piece.end_lineno or piece.lineno
    return first_line(getattr(piece, blocks[0])[0])


__all__ = ["BLOCKS", "Places", "first_line"]
