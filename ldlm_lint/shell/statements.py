"""How a statement that sets a variable may be taken apart, or out of the script, without breaking it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from tree_sitter import Node

from ldlm_lint.shell import tree
from ldlm_lint.shell.script import Block, Statement
from ldlm_lint.shell.text import Text

_REST_OF_LINE = re.compile(rb"[ \t]*;?(?:[ \t]+#[^\n]*|[ \t]*)(?:\n|\Z)")
_TO_NEXT_COMMAND = re.compile(rb"[ \t]*;[ \t]*(?=[^\s;&|#)])")
_ONLY_LINE_END = re.compile(rb"[ \t]*(?:#[^\n]*)?(?:\n|\Z)|[ \t]+#")
_BEFORE_ON_LINE = re.compile(rb"[ \t]*;?[ \t]*\Z")


@dataclass(frozen=True, slots=True)
class Part:
    """What a statement is taken apart into: the words that can go, and where the ones around them end and begin."""

    extents: tuple[tuple[int, int], ...]
    before: int | None = None
    after: int | None = None
    removable: bool = True


class Statements:
    """Reads each statement and each block of one script once, however many assignments it has."""

    def __init__(self, text: Text) -> None:
        self.text = text
        self._read: dict[int, Statement] = {}
        self._blocks: dict[int, tuple[Block, frozenset[int], int] | None] = {}

    def of(self, unit: Node, take_apart: Callable[[], Part]) -> Statement:
        """The statement whose command is ``unit``; ``take_apart`` finds its parts."""
        if unit.id not in self._read:
            self._read[unit.id] = self._statement(unit, take_apart())
        return self._read[unit.id]

    def _statement(self, unit: Node, part: Part) -> Statement:
        block, is_last = self._block(unit)
        place = self.text.span
        deletion = noop = None
        if part.removable and not unit.has_error and unit.parent is not None and unit.parent.type != "ERROR":
            deletion = _joined(unit) or (_deletion(self.text, unit) if block is not None else None)
            noop = place(unit.start_byte, unit.end_byte)
        return Statement(
            span=place(unit.start_byte, unit.end_byte),
            parts=tuple(place(*extent) for extent in part.extents),
            before=None if part.before is None else place(part.before, part.before).start,
            after=None if part.after is None else place(part.after, part.after).start,
            deletion=place(*deletion) if deletion else None,
            noop=noop,
            block=block,
            last=is_last,
        )

    def _block(self, unit: Node) -> tuple[Block | None, bool]:
        """The block that a unit is a statement of, and whether it is its last one."""
        parent = unit.parent
        if parent is None:
            return None, False
        if parent.id not in self._blocks:
            self._blocks[parent.id] = _read_block(parent)
        found = self._blocks[parent.id]
        if found is None or unit.id not in found[1]:
            return None, False
        return found[0], unit.id == found[2]


def _read_block(parent: Node) -> tuple[Block, frozenset[int], int] | None:
    statements = tree.block_statements(parent)
    if not statements:
        return None
    block = Block(parent.start_byte, len(statements), parent.type == "program")
    return block, frozenset(node.id for node in statements), statements[-1].id


def _joined(unit: Node) -> tuple[int, int] | None:
    """What goes with a command in front of ``&&``: an assignment succeeds, so the rest runs as before."""
    parent = unit.parent
    if parent is None or parent.type != "list" or parent.child_count != 3 or parent.children[0] != unit:
        return None
    _, operator, right = parent.children
    return (unit.start_byte, right.start_byte) if operator.type == "&&" else None


def _deletion(text: Text, unit: Node) -> tuple[int, int] | None:
    """The bytes of a statement of a block: its lines if nothing else stands there, else up to its neighbour."""
    start, end = unit.start_byte, unit.end_byte
    line = text.line_start(start)
    head = text.data[line:start]
    alone = not head.strip(b" \t") and not text.data.endswith(b"\\\n", 0, line)
    if alone and (rest := _REST_OF_LINE.match(text.data, end)):
        return line, text.line_end(rest.end())
    if rest := _TO_NEXT_COMMAND.match(text.data, end):
        return start, rest.end()
    if not _ONLY_LINE_END.match(text.data, end):
        return None
    blanks = _BEFORE_ON_LINE.search(head)
    return (line + blanks.start() if blanks else start), end
