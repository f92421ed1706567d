"""What a fix must leave alone: the syntax of a file outside the edited bytes."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

import tree_sitter
import tree_sitter_bash

from ldlm_lint.model import Edit
from ldlm_lint.source import Kind

Outline = list[tuple[tuple[str, ...], bytes]]


def outline(kind: Kind, data: bytes, edits: Sequence[Edit], *, applied: bool = False) -> Outline:
    """The parts of a file that no edit touches, in order: the types of the nodes above each, and its text.

    With ``applied`` the data are those after the edits, and what they wrote is left out.
    """
    touched = list(_touched(edits, applied))
    parts = _of_script(data) if kind is Kind.SHELL else _of_python(data)
    return [
        (types, data[start:end])
        for types, start, end in parts
        if all(end <= first or start >= last for first, last in touched)
    ]


def _touched(edits: Sequence[Edit], applied: bool) -> Iterator[tuple[int, int]]:
    shift = 0
    for edit in sorted(edits):
        start, size = edit.span.start, len(edit.text.encode())
        yield (start + shift, start + shift + size) if applied else (start, edit.span.end)
        shift += size - (edit.span.end - start)


def _of_script(data: bytes) -> Iterator[tuple[tuple[str, ...], int, int]]:
    parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))
    waiting: list[tuple[tree_sitter.Node, tuple[str, ...]]] = [(parser.parse(data).root_node, ())]
    while waiting:
        node, above = waiting.pop()
        if not node.children and data[node.start_byte : node.end_byte].strip():
            yield (*above, node.type), node.start_byte, node.end_byte
        waiting += [(child, (*above, node.type)) for child in reversed(node.children)]


def _of_python(data: bytes) -> Iterator[tuple[tuple[str, ...], int, int]]:
    starts = [0]
    for line in data.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    waiting: list[tuple[ast.AST, tuple[str, ...]]] = [(ast.parse(data), ())]
    while waiting:
        node, above = waiting.pop()
        children = list(ast.iter_child_nodes(node))
        if isinstance(node, (ast.expr, ast.keyword, ast.arg, ast.alias)):
            start = starts[node.lineno - 1] + node.col_offset
            end = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
            yield (*above, type(node).__name__), start, end
        waiting += [(child, (*above, type(node).__name__)) for child in reversed(children)]
