"""Checks that a shell script is still valid after a fix, and unchanged outside of the edits."""

from __future__ import annotations

import re
from collections.abc import Collection

from tree_sitter import Node

from ldlm_lint.autofix.moves import Moves, Piece
from ldlm_lint.model import Edit
from ldlm_lint.patterns import lazily
from ldlm_lint.shell.tree import block_statements, parse, without_carriage_returns
from ldlm_lint.shell.words import read_command

_NEVER_EMPTY = frozenset(("compound_statement", "subshell", "do_group", "if_statement", "elif_clause", "else_clause"))
_LONGEST_SHOWN = 60
# Below a backslash, and after one: without them the next line belongs to the command.
_COMMENTS = lazily(rb"(?:[ \t]*#[^\n]*\n)+")
_JOINED = lazily(rb"[ \t]*(#[^\n]*)?\r?\n?")


def validate_shell(before: bytes, after: bytes, edits: Collection[Edit] = ()) -> str | None:
    """The damage in a shell script, None if there is none.

    It must not have more errors than before; if ``edits`` are given (those that make ``after`` of ``before``), every
    command and word that they do not change must be found again, and a command whose words could be read still can be.
    """
    trees = parse(without_carriage_returns(before)), parse(without_carriage_returns(after))
    old, new = map(_errors, trees)
    if new > old:
        return f"the script would have {new} syntax errors instead of {old}"
    # Around unreadable code, the parser's result may change with any edit.
    return (
        _Comparison(before, after, trees[1], Moves(before, edits, "utf-8")).children(trees[0])
        if edits and not old
        else None
    )


def _errors(root: Node) -> int:
    """The places that tree-sitter could not read or had to make up, and the empty blocks, which bash refuses."""
    errors, pending = 0, [root]
    while pending:
        node = pending.pop()
        errors += node.is_error or node.is_missing
        errors += node.type in _NEVER_EMPTY and block_statements(node) == []
        pending.extend(node.children)
    return errors


class _Comparison:
    """The nodes of the new script by place, and the unchanged parts of the old one."""

    def __init__(self, before: bytes, after: bytes, root: Node, moves: Moves) -> None:
        self._before, self._after, self._moves = before, after, moves
        self._found: dict[tuple[int, int, str], Node] = {}
        self._commands: dict[int, Node] = {}
        pending = [root]
        while pending:
            node = pending.pop()
            self._found.setdefault((node.start_byte, node.end_byte, node.type), node)
            if node.type == "command":
                self._commands[node.start_byte] = node
            pending.extend(node.named_children)

    def children(self, node: Node) -> str | None:
        """The first part below a node that changed without an edit."""
        return next(filter(None, map(self._check, _parts(node))), None)

    def _check(self, node: Node) -> str | None:
        start, end = node.start_byte, node.end_byte
        touching = self._moves.touching(start, end)
        if any(piece.start <= start and end <= piece.end for piece in touching):
            return None
        if not touching:
            place, last = self._moves.place(start, behind=True), self._moves.place(end, behind=False)
            found = None if place is None or last is None else self._found.get((place, last, node.type))
            if found is not None:
                return None if self._same(node, found) else self._problem(node)
            if not self._may_grow(node):
                return None if self._is_joined(start, end) else self._problem(node)
        if node.type == "command" and not self._reads(node):
            return f"the words of `{self._shown(node)}` could no longer be read"
        return self.children(node)

    def _may_grow(self, node: Node) -> bool:
        """Whether a node may have become a longer one of its kind: a command only by added text."""
        if node.type != "command":
            return bool(_parts(node))
        start, end = node.start_byte, node.end_byte
        return any(piece.start in (start, end) for piece in self._moves.beside(start, end))

    def _is_joined(self, start: int, end: int) -> bool:
        """Whether an edit means to make the lines from one above on, without a gap, a part of the command before them."""
        return any(
            self._continues(piece)
            and (
                self._before[end : piece.start].strip() in (b"", b"\\")
                or (piece.end <= start and b"\n\n" not in self._before[piece.end : start])
            )
            for piece in self._moves.texts
        )

    def _continues(self, piece: Piece) -> bool:
        """Whether an edit ends its line with a backslash, by adding it or by removing the text after it."""
        old, above = self._before[piece.start : piece.end], self._before[: piece.start]
        if not piece.new and _COMMENTS.fullmatch(old) and above.endswith((b"\\\n", b"\\\r\n")):
            return True
        following = piece.new + self._before[piece.end : piece.end + 2]
        if re.search(rb"\\\r?\n", following) and b"\\" in piece.new:
            return True
        return bool(_JOINED.fullmatch(old)) and not piece.new.strip(b"\r\n") and above.endswith(b"\\")

    def _same(self, old: Node, new: Node) -> bool:
        """Whether two nodes have the same text but for the indentation between their parts."""
        if self._before[old.start_byte : old.end_byte] == self._after[new.start_byte : new.end_byte]:
            return True
        parts, others = _parts(old), _parts(new)
        return bool(parts) and len(parts) == len(others) and all(map(self._same, parts, others))

    def _reads(self, command: Node) -> bool:
        """Whether bashlex can still read a command, if it could."""
        place = self._moves.place(command.start_byte, behind=True)
        now = None if place is None else self._commands.get(place)
        if now is None or read_command(_text(self._before, command)) is None:
            return True
        return read_command(_text(self._after, now)) is not None

    def _problem(self, node: Node) -> str:
        return f"`{self._shown(node)}` would change"

    def _shown(self, node: Node) -> str:
        text = _text(self._before, node).splitlines()[0]
        return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."


def _parts(node: Node) -> list[Node]:
    """The parts of a node with a meaning; strings are read as a whole."""
    if node.type in ("string", "heredoc_body", "concatenation"):
        return []
    return [one for one in node.named_children if one.type != "comment"]


def _text(data: bytes, node: Node) -> str:
    return data[node.start_byte : node.end_byte].decode(errors="replace")
