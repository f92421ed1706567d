"""How a statement that sets a variable can be split, or removed from the script, without breaking it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import NamedTuple

from tree_sitter import Node

from ldlm_lint.patterns import lazily
from ldlm_lint.shell import tree
from ldlm_lint.shell.script import Block, Statement
from ldlm_lint.shell.text import Text

_REST_OF_LINE = lazily(rb"[ \t]*;?(?:[ \t]+#[^\n]*|[ \t]*)(?:\n|\Z)")
_TO_NEXT_COMMAND = lazily(rb"[ \t]*;[ \t]*(?=[^\s;&|#)])")
_ONLY_LINE_END = lazily(rb"[ \t]*(?:#[^\n]*)?(?:\n|\Z)|[ \t]+#")
_BEFORE_ON_LINE = lazily(rb"[ \t]*;?[ \t]*\Z")
# What the next command may read from the previous one: its status, its last word.
_READS_STATUS = lazily(rb"\$(?:[?_](?!\w)|\{[?_]\})")
_SUBSTITUTES = lazily(rb"`|\$\((?!\()|[<>]\(")
_SETTINGS = ("variable_assignment", "variable_assignments", "declaration_command")


class Part(NamedTuple):
    """A part of a statement: the removable words, and the borders of the words around them."""

    extents: tuple[tuple[int, int], ...]
    before: int | None = None
    after: int | None = None
    removable: bool = True


class Statements:
    """Reads each statement and each block of one script once, for any number of assignments."""

    def __init__(self, text: Text) -> None:
        self.text = text
        self._read: dict[int, Statement] = {}
        self._blocks: dict[int, _Statements | None] = {}

    def of(self, unit: Node, take_apart: Callable[[], Part]) -> Statement:
        """The statement whose command is ``unit``; ``take_apart`` finds its parts."""
        if unit.id not in self._read:
            self._read[unit.id] = self._statement(unit, take_apart())
        return self._read[unit.id]

    def _statement(self, unit: Node, part: Part) -> Statement:
        found = self._block(unit)
        place = self.text.span
        deletion = noop = None
        if part.removable and not unit.has_error and unit.parent is not None and unit.parent.type != "ERROR":
            alone = found is not None and not found.is_asked(unit)
            deletion = _joined(self.text, unit) or (_deletion(self.text, unit) if alone else None)
            noop = place(unit.start_byte, unit.end_byte)
        return Statement(
            span=place(unit.start_byte, unit.end_byte),
            parts=tuple(place(*extent) for extent in part.extents),
            before=None if part.before is None else place(part.before, part.before).start,
            after=None if part.after is None else place(part.after, part.after).start,
            deletion=place(*deletion) if deletion else None,
            noop=noop,
            block=found.block if found is not None else None,
            tail=found.tail if found is not None and found.ends_with(unit) else 0,
        )

    def _block(self, unit: Node) -> _Statements | None:
        """The block that a unit is a statement of."""
        parent = unit.parent
        if parent is None:
            return None
        if parent.id not in self._blocks:
            self._blocks[parent.id] = _Statements.of(self.text, parent)
        found = self._blocks[parent.id]
        return found if found is not None and unit.id in found.places else None


class _Statements(NamedTuple):
    """The statements of a block: their places, those whose status the next one reads, and the ones at its end.

    ``tail`` counts the statements at the end that always succeed, after one that may fail: as long as one of them
    stays, the block ends with the same status.
    """

    block: Block
    places: dict[int, int]
    asked: frozenset[int]
    tail: int

    @classmethod
    def of(cls, text: Text, parent: Node) -> _Statements | None:
        """The statements below a node; None if it is not a block."""
        nodes = tree.block_statements(parent)
        if not nodes:
            return None
        asked = {
            one.id
            for one, following in itertools.pairwise(nodes)
            if _READS_STATUS.search(text.data, following.start_byte, following.end_byte)
        }
        succeeding = list(itertools.takewhile(lambda node: _succeeds(text, node), reversed(nodes)))
        tail = len(succeeding) if len(succeeding) < len(nodes) else 0
        block = Block(parent.start_byte, len(nodes), parent.type == "program")
        return cls(block, {node.id: place for place, node in enumerate(nodes)}, frozenset(asked), tail)

    def is_asked(self, unit: Node) -> bool:
        """Whether the next statement reads the status of this one."""
        return unit.id in self.asked

    def ends_with(self, unit: Node) -> bool:
        """Whether a statement is one of the final ones that always succeed."""
        return self.places[unit.id] >= len(self.places) - self.tail


def _succeeds(text: Text, node: Node) -> bool:
    """Whether a statement only sets variables, to values without command substitutions."""
    return node.type in _SETTINGS and not _SUBSTITUTES.search(text.data, node.start_byte, node.end_byte)


def _joined(text: Text, unit: Node) -> tuple[int, int] | None:
    """The text removed with a command before ``&&``: an assignment succeeds, so the rest runs as before."""
    parent = unit.parent
    if parent is None or parent.type != "list" or parent.child_count != 3 or parent.children[0] != unit:
        return None
    _, operator, right = parent.children
    if operator.type != "&&" or _READS_STATUS.search(text.data, right.start_byte, right.end_byte):
        return None
    return unit.start_byte, right.start_byte


def _deletion(text: Text, unit: Node) -> tuple[int, int] | None:
    """The bytes of a statement of a block: its lines if they contain nothing else, else up to its neighbour."""
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
