"""What a fix must leave alone: the syntax of a file outside the edited bytes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

import tree_sitter
import tree_sitter_bash

from ldlm_lint.configs import instructions
from ldlm_lint.configs.document import Shape
from ldlm_lint.configs.read import read
from ldlm_lint.model import Edit
from ldlm_lint.source import Kind, Source

_WORD = re.compile(rb"[^\s,'\"]+|['\"]")
Outline = list[tuple[tuple[str, ...], bytes]]


def outline(kind: Kind, data: bytes, edits: Sequence[Edit], *, applied: bool = False) -> Outline:
    """The parts of a file that no edit touches, in order: the types of the nodes above each, and its text.

    With ``applied`` the data are those after the edits, and what they wrote is left out.
    """
    touched = list(_touched(edits, applied))
    readers = {Kind.SHELL: _of_script, Kind.PYTHON: _of_python, Kind.DOTENV: _of_lines, Kind.DOCKERFILE: _of_image}
    parts = readers[kind](data) if kind in readers else _of_document(kind, data)
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
        if not node.children:
            # A scheduler's directive, a list of settings and a string of code hold words of their own.
            for word in _WORD.finditer(data, node.start_byte, node.end_byte):
                yield (*above, node.type), *word.span()
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


def _of_document(kind: Kind, data: bytes) -> Iterator[tuple[tuple[str, ...], int, int]]:
    """The scalars of a document by their keys; the index of a list item moves when one before it goes."""
    for entry in read(Source.from_bytes("x", data, kind)).entries:
        if entry.shape is Shape.SCALAR and not entry.shared:
            yield tuple("" if isinstance(key, int) else key for key in entry.path), entry.span.start, entry.span.end


def _of_lines(data: bytes) -> Iterator[tuple[tuple[str, ...], int, int]]:
    start = 0
    for line in data.splitlines(keepends=True):
        if line.strip():
            yield ("line",), start, start + len(line.rstrip())
        start += len(line)


def _of_image(data: bytes) -> Iterator[tuple[tuple[str, ...], int, int]]:
    for one in instructions.read(Source.from_bytes("x", data, Kind.DOCKERFILE)):
        if one.keyword in ("ENV", "ARG"):
            yield from (((one.keyword, pair.name), pair.start, pair.end) for pair in instructions.pairs(one))
        else:
            yield (one.keyword,), one.at, one.at + len(one.body)
