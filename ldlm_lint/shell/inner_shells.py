"""Shell code that a script passes to another shell: ``bash -c '…'``, ``srun sh -c "…"``, ``nohup bash -c '…'``.

Every character keeps its offset in the file, so an escape is only resolved if an equivalent text has the same length;
other strings are skipped, and so are commands for another machine (``ssh host '…'``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from tree_sitter import Node

from ldlm_lint.patterns import lazily
from ldlm_lint.shell import launchers, tree
from ldlm_lint.shell.text import Text

_SHELL = lazily(r"(?:\S*/)?(bash|sh|dash|zsh)")
_COMMAND_OPTION = lazily(r"-[A-Za-z]*c")
_ELSEWHERE = frozenset({"ssh", "pdsh", "pssh", "echo", "printf", "grep", "su"})
_OPENING = lazily(rb"(?<![^\s;&|(])\\\"(?=[^\s\\])")
_CLOSING = lazily(rb"\\\"(?=[\s;&|)]|\Z)")
# `\$X` is `$X` for the inner shell; one more character in front keeps an unknown value unknown.
_DOLLAR = lazily(rb"\\\$(?=[\w{(?@*#])")
_NO_LINE_END = lazily(rb"[^\n]")
_ESCAPE = lazily(rb"\\[\"\\`]")


class Inner(NamedTuple):
    """The code ``data`` of an inner shell, with blanks for all that is before it in the file; it begins at ``start``.

    ``shell`` is its program, ``options`` are the words before the code.
    """

    data: bytes
    start: int
    shell: str
    options: str


def inner_shells(text: Text, found: Mapping[str, list[Node]]) -> Iterator[Inner]:
    """The strings of a script that a shell runs as code and that may start a training."""
    if not re.search(rb"\b(?:ba|da|z)?sh\b[^\n]*[ \t]-[A-Za-z]*c\b", text.data):
        return
    for command in found["command"]:
        written = tree.words(command)
        index = _place(text, written)
        if index is None or written[index].type not in ("raw_string", "string"):
            continue
        start, end = written[index].start_byte + 1, written[index].end_byte - 1
        code = _undone(text.data[start:end]) if written[index].type == "string" else text.data[start:end]
        if code is None or not launchers.HINT.search(code):
            continue
        options = text.slice(written[0].start_byte, start)
        shell = next(match[1] for word in reversed(written[:index]) if (match := _SHELL.fullmatch(text.of_node(word))))
        bom = text.source.bom
        yield Inner(padding(text.source.data[: start + bom]) + code, start + bom, shell, options)


def padding(data: bytes) -> bytes:
    """Blanks for everything but the ends of lines."""
    return _NO_LINE_END.sub(b" ", data)


def _place(text: Text, written: Sequence[Node]) -> int | None:
    """The index of the word with the code."""
    texts = [text.of_node(word) for word in written[:40]]
    if not texts or texts[0].rpartition("/")[2] in _ELSEWHERE:
        return None
    for index, word in enumerate(texts[:-1]):
        if not _SHELL.fullmatch(word):
            continue
        for behind in range(index + 1, len(texts) - 1):
            if _COMMAND_OPTION.fullmatch(texts[behind]):
                return behind + 1
            if not texts[behind].startswith(("-", "+")) and texts[behind - 1] not in ("-o", "-eo", "-euo", "-O"):
                break
    return None


def _undone(data: bytes) -> bytes | None:
    """A string in double quotes as the inner shell gets it; None if that changes the length of a word."""
    undone = _DOLLAR.sub(rb"_$", _CLOSING.sub(b'" ', _OPENING.sub(b' "', data)))
    return None if _ESCAPE.search(undone) else undone
