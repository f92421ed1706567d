r"""Reads a Dockerfile into instructions whose text keeps the offsets of the file.

Hand-written, since the readers on PyPI (`dockerfile-parse`, `dockerfile`) return lines at best, and an edit needs
bytes. Text that Docker drops before it parses an instruction (``\`` and the line end, comment lines between continued
lines) is blank here, byte for byte, so that an offset into ``body`` is one into the file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from ldlm_lint.patterns import lazily
from ldlm_lint.source import Source

_ESCAPE = lazily(rb"\A(?:#[^\n]*\n)*?#[ \t]*escape[ \t]*=[ \t]*([`\\])", re.I)
_KEYWORD = lazily(rb"[ \t]*([A-Za-z]+)(?=\s|$)")
_HEREDOC = lazily(rb"<<-?[ \t]*[\"']?(\w+)[\"']?")
_WITH_HEREDOCS = frozenset({"RUN", "COPY", "ADD"})
_PAIR = lazily(rb"([A-Za-z_][\w.-]*)=((?:\"(?:\\[\s\S]|[^\"\\])*\"|'[^']*'|\\[\s\S]|[^\s\"'\\])*)")
_OLD_PAIR = lazily(rb"([A-Za-z_][\w.-]*)[ \t]+(\S[\s\S]*?)\s*\Z")
_STAGE = lazily(rb"(?:--\S+\s+)*(\S+)(?:\s+as\s+(\S+))?", re.I)
_STRING = lazily(rb"\"((?:\\.|[^\"\\])*)\"")


class Instruction(NamedTuple):
    """An instruction: its keyword in capitals, its bytes ``[start, end)`` without the last line end.

    ``body`` is what follows the keyword, ``at`` the offset of its first byte in the file.
    """

    keyword: str
    start: int
    end: int
    at: int
    body: bytes


class Pair(NamedTuple):
    """``NAME=value`` of an ``ENV`` or ``ARG``; offsets count in the file, ``raw`` has the quotes of the value."""

    name: str
    start: int
    value: int
    end: int
    raw: str

    @property
    def plain(self) -> tuple[str, int] | None:
        """The value without its quotes and where it begins; None if it has escapes or several quotes."""
        if "\\" in self.raw:
            return None
        quoted = len(self.raw) > 1 and self.raw[0] in "\"'" and self.raw[-1] == self.raw[0]
        inner = self.raw[1:-1] if quoted else self.raw
        return None if re.search(r"[\"']", inner) else (inner, self.value + quoted)


def read(source: Source) -> Iterator[Instruction]:
    """The instructions of a Dockerfile in their order."""
    data = source.data
    match = _ESCAPE.match(data, source.bom)
    escape = re.escape(match[1] if match else b"\\")
    continued = re.compile(escape + rb"[ \t]*\r?\n?\Z")
    offset = source.bom
    lines = [line for line in re.findall(rb"[^\n]*\n|[^\n]+\Z", data[source.bom :])]
    index = 0
    while index < len(lines):
        start, first = offset, index
        text = b""
        while index < len(lines):
            line = lines[index]
            index += 1
            offset += len(line)
            if index - 1 > first and (not line.strip() or line.lstrip().startswith(b"#")):
                text += b" " * len(line)
                continue
            end = continued.search(line)
            text += line if end is None else line[: end.start()] + b" " * (len(line) - end.start())
            if end is None or line.lstrip().startswith(b"#"):
                break
        keyword = _KEYWORD.match(text)
        if keyword is None or text.lstrip().startswith(b"#"):
            continue
        name = keyword[1].decode().upper()
        body = text[keyword.end() :].rstrip()
        if name in _WITH_HEREDOCS:
            for heredoc in _HEREDOC.finditer(body):
                while index < len(lines) and (ended := lines[index].strip() != heredoc[1]):
                    offset, index = offset + len(lines[index]), index + 1
                if index < len(lines) and not ended:
                    offset, index = offset + len(lines[index]), index + 1
        yield Instruction(name, start, start + keyword.end() + len(body), start + keyword.end(), body)


def pairs(instruction: Instruction) -> tuple[Pair, ...]:
    """The variables of an ``ENV`` or ``ARG``, in either form."""
    body, at = instruction.body, instruction.at
    lead = len(body) - len(body.lstrip())
    if instruction.keyword == "ENV" and not _PAIR.match(body, lead):
        old = _OLD_PAIR.match(body, lead)
        return (_pair(old, at),) if old is not None else ()
    return tuple(_pair(match, at) for match in _PAIR.finditer(body))


def _pair(match: re.Match[bytes], at: int) -> Pair:
    raw = match[2].decode(errors="replace")
    return Pair(match[1].decode(), at + match.start(1), at + match.start(2), at + match.end(2), raw)


def names_of(instruction: Instruction) -> tuple[str, ...]:
    """The names that an ``ARG`` declares, with a default or without."""
    return tuple(word.partition(b"=")[0].decode(errors="replace") for word in instruction.body.split())


def stage(instruction: Instruction) -> tuple[str, str]:
    """The image that a ``FROM`` builds on and the name of the stage, empty if it has none."""
    match = _STAGE.match(instruction.body.strip())
    if match is None:
        return "", ""
    return match[1].decode(errors="replace").lower(), (match[2] or b"").decode(errors="replace").lower()


def words(instruction: Instruction) -> tuple[tuple[int, int], ...] | None:
    """The places in the file of the words of an exec form, without their quotes; None for the shell form."""
    body = instruction.body.strip()
    if not body.startswith(b"["):
        return None
    try:
        if not all(isinstance(one, str) for one in json.loads(body)):
            return None
    except ValueError:
        return None
    return tuple(
        (instruction.at + one.start(1), instruction.at + one.end(1)) for one in _STRING.finditer(instruction.body)
    )
