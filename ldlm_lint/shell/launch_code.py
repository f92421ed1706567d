"""The commands of a script for the launch rules: its own, and those in strings that it evaluates."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tree_sitter import Node

from ldlm_lint.patterns import lazily
from ldlm_lint.shell import launchers, tree
from ldlm_lint.shell.inner_shells import inner_shells, padding
from ldlm_lint.shell.scanner import scan
from ldlm_lint.shell.script import Assignment, Script
from ldlm_lint.shell.text import Text
from ldlm_lint.source import Kind, Source

_MOVES = ("cd", "pushd")
_VARIABLE = lazily(r'"?\$\{?(\w+)\}?"?')


@dataclass(frozen=True)
class Code:
    """A stretch of shell code: ``text`` has the bytes of the file, blanks outside of the stretch.

    ``nodes`` are those of its syntax tree by kind; ``evaluated`` if the stretch is a string for ``eval``, unlike a bare
    expansion, where a ``|`` is an argument. ``shell``: another shell runs the stretch, started with these words at
    ``start``; options of the script do not apply there.
    """

    text: Text
    script: Script
    root: Node
    nodes: Mapping[str, list[Node]]
    evaluated: bool = False
    shell: str = ""
    start: int = 0

    @property
    def source(self) -> Source:
        """The source that the offsets of the stretch count in."""
        return self.text.source

    def assigned(self, name: str) -> list[Assignment]:
        """The assignments of a variable, in their order."""
        return [one for one in self.script.assignments if one.name == name]

    @functools.cached_property
    def told(self) -> dict[tuple[str, int], tuple[object, Any]]:
        """Cached facts about launches, by kind and identity of their words, with these words."""
        return {}

    @functools.cached_property
    def moves(self) -> tuple[tuple[int, str], ...]:
        """The changes of the working folder in the stretch, and the folder as written."""
        if b"cd" not in self.text.data and b"pushd" not in self.text.data:
            return ()
        commands = ((node.start_byte + self.source.bom, tree.words(node)[:2]) for node in self.nodes["command"])
        written = ((at, [self.text.of_node(word) for word in words]) for at, words in commands)
        return tuple((at, words[1]) for at, words in written if len(words) == 2 and words[0] in _MOVES and words[1] != "-")


def codes(source: Source, script: Script) -> tuple[Code, ...]:
    """A script, followed by the strings of launch commands that it builds and then runs, or passes to another shell."""
    own = _code(source, script)
    return (own, *_strings(own), *_inner(own))


def _inner(code: Code) -> Iterator[Code]:
    """``bash -c '…'``: evaluated by a separate shell."""
    for inner in inner_shells(code.text, code.nodes):
        padded = Source.from_bytes(code.source.path, inner.data, Kind.SHELL)
        yield replace(_code(padded, scan(padded, code.script.variables.at), evaluated=True), shell=inner.options, start=inner.start)


def _code(source: Source, script: Script, evaluated: bool = False) -> Code:
    text = Text.of(source)
    return Code(text, script, tree.parse(text.data), tree.nodes(text.data), evaluated)


def _strings(code: Code) -> Iterator[Code]:
    """``cmd="torchrun … | tee log"`` with ``eval $cmd`` or ``$cmd``."""
    run = _run_variables(code)
    for node in code.nodes["assignment"]:
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name is None or value is None or not _is_quoted(value) or code.text.of_node(name) not in run:
            continue
        start, end = value.start_byte + 1 + code.source.bom, value.end_byte - 1 + code.source.bom
        inner = code.source.data[start:end]
        if launchers.HINT.search(inner):
            # Blanks in front keep every offset equal to that of the file.
            padded = Source.from_bytes(code.source.path, padding(code.source.data[:start]) + inner, Kind.SHELL)
            yield _code(padded, scan(padded), run[code.text.of_node(name)])


def _is_quoted(value: Node) -> bool:
    """Whether a value begins and ends in double quotes; quotes inside it, as in ``"a "b" c"``, end and begin a part."""
    if value.type != "concatenation":
        return value.type == "string"
    parts = value.children
    return all(part.type in ("string", "word", "number") for part in parts) and parts[0].type == parts[-1].type == "string"


def _run_variables(code: Code) -> dict[str, bool]:
    """The variables whose value is run as a command, and whether ``eval`` runs it."""
    found: dict[str, bool] = {}
    for command in code.nodes["command"]:
        words = [code.text.of_node(word) for word in tree.words(command)[:2]]
        evaluated = words[:1] == ["eval"]
        match = _VARIABLE.fullmatch(words[-1] if evaluated else words[0]) if words else None
        if match:
            found[match[1]] = found.get(match[1], False) or evaluated
    return found
