"""Variables that change without an assignment, and the calls of a script's functions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from tree_sitter import Node

from ldlm_lint.patterns import lazily
from ldlm_lint.shell import tree
from ldlm_lint.shell.reaching import Call, Change, Step
from ldlm_lint.shell.text import Text
from ldlm_lint.untrusted_numbers import whole

_NAME = re.compile(rb"[A-Za-z_]\w*")
# Builtins that assign values to the names after them.
_READERS = frozenset({"read", "mapfile", "readarray", "getopts", "printf"})
_PRINTF = re.compile(rb"-v[ \t]*([A-Za-z_]\w*)")
_ARITHMETIC = lazily(rb"(?:\(\(|\blet[ \t])([^\n]*)")
_CHANGED = lazily(rb"(?<!\w)([A-Za-z_]\w*)[ \t]*(?:(?:[-+*/%&|^]|<<|>>)?=(?!=)|\+\+|--)|(?:\+\+|--)[ \t]*([A-Za-z_]\w*)")


def steps(text: Text, found: Mapping[str, list[Node]]) -> Iterator[Step]:
    """The changes of variables by ``for``, ``read``, ``printf -v``, arithmetic and ``unset``."""
    for node in found["region"]:
        if node.type == "for_statement":
            yield from _loop(text, node)
    for node in found["unset"]:
        for unset in tree.names(node):
            yield Step(text.of_node(unset), Change.UNSET, node.start_byte, node.end_byte, node.end_byte)
    for command in found["command"]:
        name = command.child_by_field_name("name")
        if name is not None and (reader := text.of_node(name)) in _READERS:
            pattern = _PRINTF if reader == "printf" else _NAME
            for match in pattern.finditer(text.data, name.end_byte, command.end_byte):
                yield _unknown(match[match.lastindex or 0], command.start_byte, command.end_byte)
    for match in _ARITHMETIC.finditer(text.data):
        for change in _CHANGED.finditer(text.data, *match.span(1)):
            yield _unknown(change[1] or change[2], *change.span())


def _unknown(name: bytes, start: int, end: int) -> Step:
    return Step(name.decode(), Change.UNKNOWN, start, end, end)


def _loop(text: Text, node: Node) -> Iterator[Step]:
    """The variable of a loop, which holds a member of its list wherever the body runs."""
    name, body = node.child_by_field_name("variable"), node.child_by_field_name("body")
    listed = node.children_by_field_name("value")
    if name is None or body is None:
        return
    if listed:
        first, last = listed[0].start_byte, listed[-1].end_byte
        yield Step(text.of_node(name), Change.EACH, body.start_byte, first, last)
    else:
        yield _unknown(text.of_node(name).encode(), body.start_byte, body.start_byte)


def calls(text: Text, found: Mapping[str, list[Node]]) -> tuple[dict[str, list[Call]], list[tuple[int, int]]]:
    """The calls of each function of the script, and where ``shift`` drops how many parameters."""
    names = [node.child_by_field_name("name") for node in found["region"] if node.type == "function_definition"]
    functions = {text.of_node(name) for name in names if name is not None}
    made: dict[str, list[Call]] = {}
    shifts: list[tuple[int, int]] = []
    for command in found["command"] if functions else ():
        name = command.child_by_field_name("name")
        called = text.of_node(name) if name is not None else ""
        if called in functions:
            written = tuple((word.start_byte, word.end_byte) for word in tree.words(command)[1:])
            made.setdefault(called, []).append(Call(command.start_byte, written))
        elif called == "shift":
            count = text.slice(command.start_byte, command.end_byte)[5:].strip()
            shifts.append((command.start_byte, whole(count) if count.isdecimal() else 1))
    return made, shifts
