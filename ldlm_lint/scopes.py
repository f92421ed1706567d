"""The function or class around a position in a file; in a configuration the key.

For Python they come from the syntax tree; for a file with a syntax error from tokens, which takes ten times as long.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ldlm_lint.python.syntax import syntax_of
from ldlm_lint.source import Kind, Source

# The fields of a statement or module that contain statements, directly or indirectly.
_PARTS = ("body", "orelse", "finalbody", "handlers", "cases")
_DEFINITIONS = frozenset({"FunctionDef", "AsyncFunctionDef", "ClassDef"})
_LAYOUT = (tokenize.NL, tokenize.COMMENT, tokenize.ENCODING, tokenize.ENDMARKER)


class Scope(NamedTuple):
    """A function, class or key: the bytes ``[start, end)`` that belong to it, and its dotted name."""

    start: int
    end: int
    name: str


def scopes(source: Source) -> tuple[Scope, ...]:
    """The functions and classes of a file, or the keys of a configuration, an outer one before those inside it."""
    if source.kind not in (Kind.PYTHON, Kind.SHELL):
        from ldlm_lint.configs.scopes import keys

        found = keys(source)
    else:
        found = python_scopes(source) if source.kind is Kind.PYTHON else _shell(source)
    return _ordered(found)


def _ordered(found: Iterator[Scope]) -> tuple[Scope, ...]:
    return tuple(sorted(found, key=lambda scope: (scope.start, -scope.end)))


def symbol_at(found: tuple[Scope, ...], offset: int) -> str:
    """The dotted name of the innermost of the scopes at a byte offset; empty at top level."""
    return next((scope.name for scope in reversed(found) if scope.start <= offset < scope.end), "")


def python_scopes(source: Source) -> Iterator[Scope]:
    """The functions and classes of a Python file, in any order."""
    tree = syntax_of(source)
    return by_tokens(source) if tree is None else _by_tree(source, tree)


def _by_tree(source: Source, tree: ast.Module) -> Iterator[Scope]:
    end_of = _ends(source, tree)
    waiting: list[tuple[Any, str]] = [(tree, "")]
    while waiting:
        node, around = waiting.pop()
        if node.__class__.__name__ in _DEFINITIONS:
            around = f"{around}.{node.name}" if around else node.name
            yield Scope(source.line_starts[_first_line(node) - 1], end_of(node), around)
        for part in _PARTS:
            waiting += [(child, around) for child in getattr(node, part, ())]


def _first_line(definition: Any) -> int:
    return min((definition.lineno, *(one.lineno for one in definition.decorator_list)))


def _ends(source: Source, tree: ast.Module) -> Callable[[Any], int]:
    """The ends of definitions in bytes; the last one is open to the end of the file."""
    starts = (*source.line_starts, len(source.data))
    last = tree.body[-1].end_lineno if tree.body else 0

    def end_of(node: Any) -> int:
        return len(source.data) + 1 if node.end_lineno == last else starts[min(node.end_lineno, len(starts) - 1)]

    return end_of


class _Line(NamedTuple):
    """A logical line: how deep it is indented, the physical lines it takes, and its first words."""

    depth: int
    first: int
    last: int
    words: tuple[str, ...]

    @property
    def defines(self) -> str:
        """The name of the function or class that the line begins, empty for every other line."""
        words = self.words[1:] if self.words[:1] == ("async",) else self.words
        return words[1] if len(words) > 1 and words[0] in ("def", "class") else ""


def by_tokens(source: Source) -> Iterator[Scope]:
    """The functions and classes of a Python file up to where it breaks off."""
    starts = (*source.line_starts, len(source.data))
    end_of_file = len(source.data) + 1
    around: list[tuple[int, int, str]] = []
    end = decorated = 0
    for line in _logical_lines(source.text):
        while around and around[-1][0] >= line.depth:
            _, first, name = around.pop()
            yield Scope(starts[first - 1], end, name)
        end = starts[min(line.last, len(starts) - 1)]
        first = decorated or line.first
        decorated = first if line.words[:1] == ("@",) else 0
        if line.defines:
            name = f"{around[-1][2]}.{line.defines}" if around else line.defines
            around.append((line.depth, first, name))
    for _, first, name in around:
        # The last scope is open to the end of the file, which is also where a file that breaks off leaves it.
        yield Scope(starts[first - 1], end_of_file, name)


def _logical_lines(text: str) -> Iterator[_Line]:
    depth = first = 0
    words: list[str] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(text, newline=None).readline):
            if token.type in (tokenize.INDENT, tokenize.DEDENT):
                depth += 1 if token.type == tokenize.INDENT else -1
            elif token.type == tokenize.NEWLINE:
                yield _Line(depth, first, token.start[0], tuple(words))
                words, first = [], 0
            elif token.type not in _LAYOUT:
                first = first or token.start[0]
                if len(words) < 3:
                    words.append(token.string)
    except (tokenize.TokenError, SyntaxError):
        # Code after the error belongs to the scopes that are open there.
        return


def _shell(source: Source) -> Iterator[Scope]:
    from ldlm_lint.shell import tree

    waiting = [(tree.parse(tree.without_carriage_returns(source.data[source.bom :])), "")]
    while waiting:
        node, around = waiting.pop()
        if node.type == "function_definition":
            name = node.child_by_field_name("name")
            own = name.text.decode(errors="replace") if name is not None and name.text else ""
            around = f"{around}.{own}" if around else own
            yield Scope(node.start_byte + source.bom, node.end_byte + source.bom, around)
        waiting += [(child, around) for child in node.named_children]
