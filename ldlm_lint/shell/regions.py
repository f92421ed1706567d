"""The stretches of a script that run conditionally, repeatedly, in a subshell or when they are called."""

from __future__ import annotations

import bisect
import enum
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from tree_sitter import Node

from ldlm_lint.shell.text import Text

_ENDS = frozenset({"exit", "return", "continue", "break", "exec", "die"})


class Kind(enum.Enum):
    """Why variables set in a region may not apply after it."""

    BRANCH = "branch"
    LOOP = "loop"
    APART = "apart"
    FUNCTION = "function"


class Group(NamedTuple):
    """The branches of one ``if`` or ``case``: how many there are, and how many of them end the script or the loop.

    ``complete``: one of them always runs.
    """

    start: int
    branches: int = 1
    ending: int = 0
    complete: bool = False


class Region(NamedTuple):
    """The bytes ``[start, end)`` of a script; ``ends``: the code after its group does not run, ``name`` of a
    function.
    """

    kind: Kind
    start: int
    end: int
    group: Group
    ends: bool = False
    name: str = ""


class Regions:
    """The regions of one script, for finding those around a place."""

    def __init__(self, text: Text, found: Mapping[str, list[Node]]) -> None:
        read = (region for node in found["region"] for region in _regions(text, node))
        self._all = sorted(read, key=lambda one: (one.start, -one.end))
        self._starts = [region.start for region in self._all]
        self._parents: list[int] = []
        self._around: dict[int, tuple[Region, ...]] = {}
        stack: list[int] = []
        for index, region in enumerate(self._all):
            while stack and self._all[stack[-1]].end <= region.start:
                stack.pop()
            self._parents.append(stack[-1] if stack else -1)
            stack.append(index)

    def around(self, offset: int) -> tuple[Region, ...]:
        """The regions that hold an offset, outermost first."""
        if offset not in self._around:
            self._around[offset] = self._holding(offset)
        return self._around[offset]

    def functions(self) -> tuple[Region, ...]:
        """The bodies of the functions, in order."""
        return tuple(region for region in self._all if region.kind is Kind.FUNCTION)

    def _holding(self, offset: int) -> tuple[Region, ...]:
        index = bisect.bisect_right(self._starts, offset) - 1
        path = []
        while index >= 0:
            if self._all[index].end > offset:
                path.append(self._all[index])
            index = self._parents[index]
        return tuple(reversed(path))


def _regions(text: Text, node: Node) -> Iterator[Region]:
    kind, start, end = node.type, node.start_byte, node.end_byte
    alone = Group(start)
    if kind == "if_statement":
        yield from _branches(text, node)
    elif kind == "case_statement":
        yield from _items(text, node)
    elif kind in ("while_statement", "for_statement", "c_style_for_statement"):
        body = node.child_by_field_name("body")
        if body is not None:
            yield Region(Kind.LOOP, body.start_byte, body.end_byte, alone)
    elif kind == "list":
        if node.child_count == 3:
            yield Region(Kind.BRANCH, node.children[2].start_byte, end, alone)
    elif kind == "function_definition":
        body, name = node.child_by_field_name("body"), node.child_by_field_name("name")
        if body is not None and name is not None:
            yield Region(Kind.FUNCTION, body.start_byte, body.end_byte, alone, name=text.of_node(name))
    else:
        yield Region(Kind.APART, start, end, alone)


def _branches(text: Text, node: Node) -> Iterator[Region]:
    """``then``, each ``elif`` and ``else``; their conditions count as part of them."""
    children = node.children
    clauses = [child for child in children if child.type in ("elif_clause", "else_clause")]
    then = next((child for child in children if child.type == "then"), None)
    if then is None:
        return
    end = clauses[0].start_byte if clauses else node.end_byte
    body = [child for child in children if then.start_byte < child.start_byte < end and child.is_named]
    parts = [(then.end_byte, end, body), *((one.start_byte, one.end_byte, one.named_children) for one in clauses)]
    ends = [_ends(text, statements) for _, _, statements in parts]
    group = Group(node.start_byte, len(parts), sum(ends), bool(clauses) and clauses[-1].type == "else_clause")
    for (start, until, _), last in zip(parts, ends, strict=True):
        yield Region(Kind.BRANCH, start, until, group, last)


def _items(text: Text, node: Node) -> Iterator[Region]:
    items = [child for child in node.named_children if child.type == "case_item"]
    ends = [_ends(text, item.named_children) for item in items]
    patterns = (item.child_by_field_name("value") for item in items)
    complete = any(pattern is not None and text.of_node(pattern) == "*" for pattern in patterns)
    group = Group(node.start_byte, len(items), sum(ends), complete)
    for item, last in zip(items, ends, strict=True):
        yield Region(Kind.BRANCH, item.start_byte, item.end_byte, group, last)


def _ends(text: Text, statements: list[Node]) -> bool:
    """Whether the last command of a branch leaves the enclosing code."""
    last = next((one for one in reversed(statements) if one.type not in ("comment", "elif_clause", "else_clause")), None)
    return last is not None and last.type == "command" and text.of_node(last).split(maxsplit=1)[0] in _ENDS
