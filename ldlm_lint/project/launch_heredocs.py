"""Variables that a script fills from a heredoc: ``read -r -d '' ARGS <<EOF`` containing a program and its arguments."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ldlm_lint.patterns import lazily
from ldlm_lint.shell import words
from ldlm_lint.shell.launch_code import Code
from ldlm_lint.shell.script import Word

_READ = (
    rb"^[ \t]*(?:IFS=\S*[ \t]+)?read[ \t]+(?:-r[ \t]+)?-(?:r?d)[ \t]+(?:''|\"\")[ \t]+%s[ \t]*"
    rb"<<-?[ \t]*['\"]?(\w+)['\"]?[^\n]*\n(.*?)^[ \t]*\1[ \t]*$"
)
_WHOLE = lazily(r"\$(?:\{(\w+)\}|(\w+))")
_TOKEN = lazily(rb"(?:[^\s'\"\\]|\\[^\n]|'[^']*'|\"(?:[^\"\\]|\\.)*\")+")


def filled(code: Code, given: Iterable[Word]) -> Iterator[Word]:
    """Words with such a variable replaced by the words of its heredoc."""
    for word in given:
        match = _WHOLE.fullmatch(word.text)
        name = match[1] or match[2] if match else ""
        held = list(_words(code, name)) if name and not code.assigned(name) else []
        yield from held or (word,)


def _words(code: Code, name: str) -> Iterator[Word]:
    if b"read" not in code.text.data:
        return
    match = re.search(_READ % re.escape(name).encode(), code.text.data, re.M | re.S)
    if match is None:
        return
    for token in _TOKEN.finditer(match[2]):
        raw = token[0].decode(errors="replace")
        start = match.start(2) + token.start()
        yield Word(words.read_word(raw), code.text.span(start, start + len(token[0])), "$" not in raw)
