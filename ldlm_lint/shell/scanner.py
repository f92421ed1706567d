"""From a script's bytes to a `Script`: tree-sitter-bash provides the structure, bashlex reads the words."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from tree_sitter import Node

from ldlm_lint.shell import assignments, expansions, functions, launchers, tree, words
from ldlm_lint.shell.script import Launch, Script, Word
from ldlm_lint.shell.text import Text, byte_offset
from ldlm_lint.shell.values import Outside
from ldlm_lint.source import Kind, Segment, Source

_REMEMBERED = 512


def scan(source: Source, outside: Outside | None = None) -> Script:
    """Everything that the rules need of a script, for any bytes.

    Values of variables are resolved if the script leaves one possibility; a stretch that neither parser can read has
    its line in ``unseen``, and is never an error. ``outside`` returns the variables set by other scripts.
    """
    return _scan(source, outside) if outside is not None else _scanned(source.path, source.data, source.kind, source.segments)


@functools.lru_cache(_REMEMBERED)
def _scanned(path: str, data: bytes, kind: Kind, segments: tuple[Segment, ...]) -> Script:
    """A script without outside variables, cached for its own rules and for the project."""
    return _scan(Source(path, data, kind, segments=segments), None)


def _scan(source: Source, outside: Outside | None) -> Script:
    text = Text.of(source)
    found = tree.nodes(text.data)
    launches, unread = _launches(text, found["command"])
    broken = {node.start_point.row for node in (*found["error"], *found["missing"])}
    made, variables = assignments.read(text, found, outside)
    return Script(
        assignments=made,
        expansions=tuple(expansions.read(text, found)),
        launches=tuple(functions.through(text, launches, variables)),
        unset=tuple(text.of_node(name) for node in found["unset"] for name in tree.names(node)),
        unseen=tuple(row + 1 for row in sorted(broken | unread)),
        sources=tuple(_sources(text, found["command"])),
        variables=variables,
    )


def _sources(text: Text, commands: list[Node]) -> Iterator[Word]:
    """The files that ``source`` and ``.`` run."""
    for command in commands:
        name = command.child_by_field_name("name")
        if name is None or text.data[name.start_byte : name.end_byte] not in (b"source", b"."):
            continue
        written = tree.words(command)
        if len(written) > 1:
            raw = text.of_node(written[1])
            quoted = len(raw) > 1 and raw[0] == raw[-1] and raw[0] in "\"'"
            span = text.span(written[1].start_byte, written[1].end_byte)
            yield Word(raw[1:-1] if quoted else words.read_word(raw), span, "$" not in raw and "`" not in raw)


def _launches(text: Text, commands: list[Node]) -> tuple[list[Launch], set[int]]:
    """The launcher commands, and the lines of those that could not be read."""
    launches, unread = [], set()
    for command in commands:
        if not launchers.HINT.search(text.data, command.start_byte, command.end_byte):
            continue
        detached = tree.is_detached(text.data, command)
        split = not detached and tree.is_split(text.data, command)
        lexed = _read_again(text, command) if split else None
        if split and lexed is None:
            unread.add(command.start_point.row)
        start, written = lexed or _from_tree(text, command)
        if detached and written:
            start = written[0].span.start - text.source.bom
        launcher = launchers.launcher_of([word.text for word in written])
        if launcher is not None:
            end = written[-1].span.end - text.source.bom
            launches.append(Launch(launcher, text.span(start, end), tuple(written)))
    return launches, unread


def _from_tree(text: Text, command: Node) -> tuple[int, list[Word]]:
    made = []
    for node in tree.words(command):
        raw = text.of_node(node)
        made.append(
            Word(words.read_word(raw), text.span(node.start_byte, node.end_byte), "$" not in raw and "`" not in raw)
        )
    return command.start_byte, made


def _read_again(text: Text, command: Node) -> tuple[int, list[Word]] | None:
    """A command's start and words as bashlex reads them, None if it cannot."""
    start = tree.command_start(text.data, command)
    raw = text.slice(start, tree.command_end(text.data, command))
    read = words.read_command(raw)
    if read is None or not read.words:
        return None
    made = []
    for piece in read.words:
        span = text.span(start + byte_offset(raw, piece.start), start + byte_offset(raw, piece.end))
        made.append(Word(piece.text, span, piece.literal))
    return start, made
