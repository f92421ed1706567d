"""Checks that the syntax tree of a Python file is unchanged outside of the edits."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from ldlm_lint.autofix.moves import Moves, Piece
from ldlm_lint.source import Source

_BLOCKS = (
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
    ast.For,
    ast.AsyncFor,
    ast.While,
    ast.If,
    ast.With,
    ast.AsyncWith,
    ast.Try,
    # Python 3.11 and later.
    getattr(ast, "TryStar", ast.Try),
    ast.Match,
    ast.ExceptHandler,
)
_BLOCK_FIELDS = ("body", "orelse", "finalbody", "handlers", "cases")
# Operator precedence: text next to an operand may change the operand's operator.
_OPERATORS = (ast.BinOp, ast.BoolOp, ast.UnaryOp, ast.Compare, ast.IfExp, ast.Await, ast.Attribute, ast.Subscript)
_LONGEST_SHOWN = 60

_Chain = tuple[tuple[ast.AST, str], ...]


def difference(old: Source, old_tree: ast.Module, new: Source, new_tree: ast.Module, moves: Moves) -> str | None:
    """The first change outside of the edits, as text; None if there is none.

    Untouched parts must be found at their new positions, equal, in the same blocks, except for blocks that an edit adds
    around them. A node edited inside keeps its kind, its operators and its other parts. If an edit changes the words of
    a node itself (its operator, its keyword, the list of its arguments), the node may change, its untouched parts may
    not.
    """
    return _Comparison(old, new, new_tree, moves).children(old_tree, ())


class _Comparison:
    """Both trees by position; the places of the old one are mapped as they are needed."""

    def __init__(self, old: Source, new: Source, new_tree: ast.Module, moves: Moves) -> None:
        self._old, self._new, self._moves = old, new, moves
        self._by_place: dict[tuple[int, int, type[ast.AST]], ast.AST] = {}
        self._blocks: dict[tuple[int, type[ast.AST]], ast.AST] = {}
        self._parents: dict[ast.AST, tuple[ast.AST, str]] = {}
        self._index(new_tree)

    def children(self, node: ast.AST, chain: _Chain) -> str | None:
        """The first difference below a node that an edit touches; ``chain`` holds the blocks around it."""
        for field, child in _placed_children(node):
            place = (*chain, (node, field)) if isinstance(node, _BLOCKS) else chain
            problem = self._check(child, place)
            if problem:
                return problem
        return None

    def _check(self, node: ast.AST, chain: _Chain) -> str | None:
        start, end = self._span(self._old, node)
        touching = self._moves.touching(start, end)
        if any(piece.start <= start and end <= piece.end for piece in touching):
            return None
        if not touching:
            found = self._found(node, start, end)
            if found is not None and _same(node, found):
                moved = self._moved(node, found, chain) if isinstance(node, ast.stmt) else None
                return moved or self._decorators(node, chain)
            touching = self._moves.beside(start, end)
            # The contents and end of a block are checked by its statements.
            grows = isinstance(node, _BLOCKS) or (found is None and touching and self._may_grow(node))
            if not grows:
                return f"`{self._shown(node)}` would change"
        problem = self._edited(node, start, end, touching, chain)
        return problem or self._decorators(node, chain) or self.children(node, chain)

    @staticmethod
    def _may_grow(node: ast.AST) -> bool:
        """Whether text next to a node may become a part of it; an operand would be taken from its operator."""
        chain = isinstance(node, ast.BoolOp) or not isinstance(node, _OPERATORS)
        return chain and any(True for _ in _placed_children(node))

    def _found(self, node: ast.AST, start: int, end: int) -> ast.AST | None:
        place, last = self._moves.place(start, behind=True), self._moves.place(end, behind=False)
        return None if place is None or last is None else self._by_place.get((place, last, type(node)))

    def _decorators(self, node: ast.AST, chain: _Chain) -> str | None:
        """Decorators are in front of what they decorate, and are edited by themselves."""
        decorators = getattr(node, "decorator_list", ())
        return next(filter(None, (self._check(one, chain) for one in decorators)), None)

    def _edited(self, node: ast.AST, start: int, end: int, touching: list[Piece], chain: _Chain) -> str | None:
        """The error in a node with an edit inside."""
        if isinstance(node, _BLOCKS):
            return self._edited_block(node, start, touching, chain)
        if self._has_own(node, start, end, touching):
            return None
        for found in self._candidates(node, start, end):
            if self._kept(node, found):
                return self._moved(node, found, chain) if isinstance(node, ast.stmt) else None
        return f"`{self._shown(node)}` would be parsed differently"

    def _edited_block(self, node: ast.AST, start: int, touching: list[Piece], chain: _Chain) -> str | None:
        head_end = self._head_end(node, start)
        if any(piece.start <= head_end and piece.end > start for piece in touching):
            return None
        place = self._moves.place(start, behind=True)
        found = None if place is None else self._blocks.get((place, type(node)))
        if found is None or getattr(found, "name", None) != getattr(node, "name", None):
            return f"`{self._shown(node)}` would no longer begin its block"
        return self._moved(node, found, chain)

    def _head_end(self, node: ast.AST, start: int) -> int:
        """The end of a block's first line: its keyword and its expressions."""
        heads = [child for field, child in _placed_children(node) if field not in _BLOCK_FIELDS]
        return max([start + 3, *(self._span(self._old, head)[1] for head in heads)])

    def _has_own(self, node: ast.AST, start: int, end: int, touching: list[Piece]) -> bool:
        """Whether an edit touches the node itself and not only a part of it."""
        children = [child for _, child in _placed_children(node)]
        # A lone generator has the parentheses of its call, and gets its own when an argument is added.
        spans = [self._span(self._old, one) for one in children if not isinstance(one, ast.GeneratorExp)]
        closed = isinstance(node, _OPERATORS)

        def inside(piece: Piece, begin: int, stop: int) -> bool:
            within = begin <= piece.start and piece.end <= stop
            return within and (closed or piece.start < piece.end or piece in self._moves.touching(begin, stop))

        mine = [piece for piece in touching if start <= piece.start and piece.end <= end]
        return len(mine) < len(touching) or not all(any(inside(piece, *span) for span in spans) for piece in mine)

    def _candidates(self, node: ast.AST, start: int, end: int) -> Iterator[ast.AST]:
        """The nodes of the same kind at the place of an edited one; insertions at its ends may belong to it or not."""
        for begin in (True, False):
            for finish in (False, True):
                place, last = self._moves.place(start, behind=begin), self._moves.place(end, behind=finish)
                if place is not None and last is not None and (place, last, type(node)) in self._by_place:
                    yield self._by_place[place, last, type(node)]

    def _kept(self, node: ast.AST, found: ast.AST) -> bool:
        """Whether a node is the same, except inside its parts."""
        free = isinstance(node, ast.BoolOp) or (isinstance(node, ast.Call) and self._passes_replaced(node))
        for field in node._fields:
            old, new = getattr(node, field, None), getattr(found, field, None)
            if isinstance(old, list) and isinstance(new, list):
                if not free and not self._kept_list(old, new):
                    return False
            elif isinstance(old, ast.AST) and isinstance(new, ast.AST) and hasattr(old, "lineno"):
                if not self._within(old, new):
                    return False
            elif isinstance(old, ast.AST) and hasattr(old, "lineno"):
                if new is not None or not self._is_replaced(old):
                    return False
            elif isinstance(old, ast.AST):
                if type(old) is not type(new):
                    return False
            elif repr(old) != repr(new):
                return False
        return True

    def _passes_replaced(self, call: ast.Call) -> bool:
        """Whether an argument as a whole is replaced; it may become a keyword argument, or several."""
        return any(self._is_replaced(one) for one in (*call.args, *call.keywords))

    def _kept_list(self, old: list[object], new: list[object]) -> bool:
        placed = [one for one in old if hasattr(one, "lineno")]
        if len(placed) < len(old) or not old:
            return [type(one) for one in old] == [type(one) for one in new]
        if any(self._is_replaced(one) for one in placed if isinstance(one, ast.AST)):
            return True
        return len(old) == len(new)

    def _is_replaced(self, node: ast.AST) -> bool:
        start, end = self._span(self._old, node)
        return any(piece.start <= start and end <= piece.end for piece in self._moves.touching(start, end))

    def _within(self, old: ast.AST, new: ast.AST) -> bool:
        """Whether the new part is where the old one did."""
        start, end = self._span(self._old, old)
        place, last = self._moves.place(start, behind=False), self._moves.place(end, behind=True)
        now, until = self._span(self._new, new)
        return place is not None and last is not None and place <= now and until <= last

    def _moved(self, node: ast.AST, found: ast.AST, chain: _Chain) -> str | None:
        """Whether a statement is in other blocks than before, except for those that an edit adds or removes."""
        mine = {
            (place, type(block)): field for block, field in chain if (place := self._block_place(block)) is not None
        }
        theirs = {(self._span(self._new, block)[0], type(block)): field for block, field in self._around(found)}
        for key, field in theirs.items():
            if key not in mine and not self._moves.is_new(key[0]):
                return f"`{self._shown(node)}` would move into another block"
            if mine.get(key, field) != field:
                return f"`{self._shown(node)}` would move into another branch"
        for block, _ in chain:
            start = self._span(self._old, block)[0]
            place = self._block_place(block)
            if (place, type(block)) not in theirs and not self._moves.touching(start, self._head_end(block, start)):
                return f"`{self._shown(node)}` would leave its block"
        return None

    def _block_place(self, block: ast.AST) -> int | None:
        return self._moves.place(self._span(self._old, block)[0], behind=True)

    def _around(self, node: ast.AST) -> Iterator[tuple[ast.AST, str]]:
        while node in self._parents:
            node, field = self._parents[node]
            if isinstance(node, _BLOCKS):
                yield node, field

    def _index(self, tree: ast.Module) -> None:
        pending: list[ast.AST] = [tree]
        while pending:
            node = pending.pop()
            for field, child in (
                *_placed_children(node),
                *(("decorator_list", one) for one in getattr(node, "decorator_list", ())),
            ):
                start, end = self._span(self._new, child)
                self._by_place.setdefault((start, end, type(child)), child)
                if isinstance(child, _BLOCKS):
                    self._blocks[start, type(child)] = child
                self._parents[child] = (node, field)
                pending.append(child)

    @staticmethod
    def _span(source: Source, node: Any) -> tuple[int, int]:
        """The bytes of a node that has a place."""
        start = source.offset(node.lineno, node.col_offset)
        return start, source.offset(node.end_lineno, node.end_col_offset)

    def _shown(self, node: ast.AST) -> str:
        start, end = self._span(self._old, node)
        text = self._old.slice(self._old.span(start, end)).splitlines()[0]
        return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."


def _placed_children(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """The nearest nodes below with a position, with their fields; without decorators and pieces of f-strings."""
    if isinstance(node, ast.JoinedStr):
        return
    for field, value in ast.iter_fields(node):
        if field == "decorator_list":
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST):
                continue
            if hasattr(child, "lineno"):
                yield field, child
            else:
                yield from ((field, below) for _, below in _placed_children(child))


def _same(one: object, other: object, top: bool = True) -> bool:
    """Whether two trees are equal but for places, and for the decorators of the uppermost node."""
    if isinstance(one, ast.AST):
        return type(one) is type(other) and all(
            (top and field == "decorator_list") or _same(getattr(one, field, None), getattr(other, field, None), False)
            for field in one._fields
        )
    if isinstance(one, list):
        return isinstance(other, list) and len(one) == len(other) and all(map(_same_below, one, other))
    return type(one) is type(other) and (one == other or repr(one) == repr(other))


def _same_below(one: object, other: object) -> bool:
    return _same(one, other, False)
