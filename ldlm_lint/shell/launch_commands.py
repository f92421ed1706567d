"""The commands in the tree of a script, and those whose launcher is in a variable."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from ldlm_lint.patterns import lazily
from ldlm_lint.shell import launchers, tree, words
from ldlm_lint.shell.launch_arguments import Argument, values, written_words
from ldlm_lint.shell.launch_code import Code
from ldlm_lint.shell.script import Launch, Word
from ldlm_lint.shell.text import Text

_WHOLE = lazily(r"\$(?:\{(\w+)\}|(\w+))")


def words_of(text: Text, node: Node) -> tuple[Word, ...]:
    """The words of a command as the tree has them."""
    made = []
    for one in tree.words(node):
        raw = text.of_node(one)
        made.append(Word(words.read_word(raw), text.span(one.start_byte, one.end_byte), "$" not in raw))
    return tuple(made)


def through_variables(code: Code) -> Iterator[Launch]:
    """The commands whose launcher is in a variable: ``$LAUNCHER train.py``."""
    for node in code.nodes["command"]:
        if code.text.data[node.start_byte : node.start_byte + 1] not in (b"$", b'"'):
            continue
        found = words_of(code.text, node)
        if not found or not _WHOLE.fullmatch(re.sub(r"\[[@*]\]", "", found[0].text)):
            continue
        launch = Launch("", code.text.span(node.start_byte, node.end_byte), found)
        full = written_words(code, launch)
        if [one.text for one in full[:1]] != [found[0].text]:
            yield launch
            continue
        # One word alone is a value, such as the interpreter.
        known = values(code, Argument("", found[0].text, found[0].span))
        if known and len({one.text for one in known}) == 1 and " " not in known[0].text:
            name = found[0]._replace(text=known[0].text)
            if launchers.launcher_of([name.text, *(one.text for one in found[1:])]):
                yield launch._replace(words=(name, *found[1:]))
