"""From a script's bytes to a `Script`: tree-sitter-bash gives the structure, bashlex reads the words."""

from __future__ import annotations

from tree_sitter import Node

from ldlm_lint.shell import assignments, expansions, launchers, tree, words
from ldlm_lint.shell.script import Launch, Script, Word
from ldlm_lint.shell.text import Text, byte_offset
from ldlm_lint.source import Source


def scan(source: Source) -> Script:
    """Everything that the rules need of a script, for any bytes whatever.

    Values of variables are resolved where the script leaves one possibility; a stretch that neither parser can
    read is counted in ``unseen``, never an error.
    """
    text = Text.of(source)
    found = tree.nodes(tree.parse(text.data))
    launches, unread = _launches(text, found["command"])
    broken = {node.start_point.row for node in (*found["error"], *found["missing"])}
    return Script(
        assignments=assignments.read(text, found),
        expansions=tuple(expansions.read(text, found)),
        launches=tuple(launches),
        unset=tuple(text.of_node(name) for node in found["unset"] for name in node.named_children),
        unseen=len(broken | unread),
    )


def _launches(text: Text, commands: list[Node]) -> tuple[list[Launch], set[int]]:
    """The launcher commands, and the lines of those that could not be read."""
    launches, unread = [], set()
    for command in commands:
        if not launchers.HINT.search(text.data, command.start_byte, command.end_byte):
            continue
        lexed = _lexed(text, command)
        if lexed is None:
            lexed = _from_tree(text, command)
            if command.has_error:
                unread.add(command.start_point.row)
        launcher = launchers.launcher_of([word.text for word in lexed[1]])
        if launcher is not None and lexed[1]:
            start, end = lexed[0], lexed[1][-1].span.end - text.source.bom
            launches.append(Launch(launcher, text.span(start, end), tuple(lexed[1])))
    return launches, unread


def _lexed(text: Text, command: Node) -> tuple[int, list[Word]] | None:
    """A command's start and words as bashlex reads them, arguments behind a redirection included."""
    start = tree.statement_start(text.data, command)
    raw = text.slice(start, tree.end_before_heredoc(command))
    read = words.read_command(raw)
    if read is None or not read.words:
        return None
    made = []
    for piece in read.words:
        span = text.span(start + byte_offset(raw, piece.start), start + byte_offset(raw, piece.end))
        made.append(Word(piece.text, span, piece.literal))
    return start, made


def _from_tree(text: Text, command: Node) -> tuple[int, list[Word]]:
    """The same from the syntax tree, for what bashlex cannot read."""
    made = [
        Word(
            text.of_node(node),
            text.span(node.start_byte, node.end_byte),
            node.type in ("word", "number", "command_name"),
        )
        for node in tree.words(command)
    ]
    return command.start_byte, made
