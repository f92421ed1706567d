"""How a statement that sets a variable may be taken apart, or out of the script, without breaking it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tree_sitter import Node

from ldlm_lint.shell import tree
from ldlm_lint.shell.script import Block, Statement
from ldlm_lint.shell.text import Text

_REST_OF_LINE = re.compile(rb"[ \t]*;?(?:[ \t]+#[^\n]*|[ \t]*)(?:\n|\Z)")
_TO_NEXT_COMMAND = re.compile(rb"[ \t]*;[ \t]*(?=[^\s;&|#)])")
_ONLY_LINE_END = re.compile(rb"[ \t]*(?:#[^\n]*)?(?:\n|\Z)|[ \t]+#")
_BEFORE_ON_LINE = re.compile(rb"[ \t]*;?[ \t]*\Z")


def read_statement(
    text: Text,
    unit: Node,
    parts: Sequence[tuple[int, int]],
    before: int | None = None,
    after: int | None = None,
    *,
    removable: bool = True,
) -> Statement:
    """The statement whose command is ``unit``; ``removable`` is False where the command does something else too."""
    block = _block(unit)
    joined = _joined(unit)
    deletion = noop = None
    if removable and not unit.has_error:
        deletion = joined or (block and _deletion(text, unit))
        noop = None if unit.parent is None or unit.parent.type == "ERROR" else text.span(unit.start_byte, unit.end_byte)
    return Statement(
        span=text.span(unit.start_byte, unit.end_byte),
        parts=tuple(text.span(*part) for part in parts),
        before=None if before is None else text.span(before, before).start,
        after=None if after is None else text.span(after, after).start,
        deletion=text.span(*deletion) if deletion else None,
        noop=noop,
        block=block,
        last=_is_last(unit),
    )


def _block(unit: Node) -> Block | None:
    parent = unit.parent
    statements = tree.block_statements(parent) if parent is not None else None
    if parent is None or statements is None or unit not in statements:
        return None
    return Block(parent.start_byte, len(statements), parent.type == "program")


def _is_last(unit: Node) -> bool:
    statements = tree.block_statements(unit.parent) if unit.parent is not None else None
    return bool(statements) and statements[-1] == unit


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
        return line, rest.end()
    if rest := _TO_NEXT_COMMAND.match(text.data, end):
        return start, rest.end()
    if not _ONLY_LINE_END.match(text.data, end):
        return None
    blanks = _BEFORE_ON_LINE.search(head)
    return (line + blanks.start() if blanks else start), end
