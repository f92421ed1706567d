"""JSON with the positions of all values, read token by token: the standard library does not keep positions.

As lenient as the programs that read such files: comments and a comma after the last value are accepted
(``tsconfig.json``, JSON5 readers), so are ``NaN`` and ``Infinity``, which Python writes.
"""

from __future__ import annotations

import json
import re
from typing import cast

from ldlm_lint.configs.document import DataError, Document, DocumentError, Entry, Path, Shape, spans
from ldlm_lint.configs.templates import bare_placeholder
from ldlm_lint.model import Span
from ldlm_lint.patterns import lazily
from ldlm_lint.source import Source

# Settings that people write by hand are far smaller; recorded results and label tables are not.
MAX_COMMAS = 5_000
MAX_DEPTH = 60
_TOKEN = lazily(
    r"""[ \t\r\n]*
    (?: (?P<string>"(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*")
      | (?P<sign>[{}\[\],:])
      | (?P<number>-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)(?![\w.$])
      | (?P<word>true|false|null|NaN|-?Infinity)(?![\w.$])
      | (?P<end>\Z) )""",
    re.X,
)
_BLANKS = lazily(r"[ \t\r\n]*")
_LINE_END = lazily(r"[\r\n]|\Z")
_WORDS = {
    **{"true": True, "false": False, "null": None},
    **{"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")},
}


def read(source: Source) -> Document:
    """The document of a JSON file; raises DocumentError with the line of the first error, DataError for data."""
    if source.text.count(",") > MAX_COMMAS:
        raise DataError("contains data, not settings", 1)
    return Document(source.path, source.kind, _Reader(source).entries())


class _Reader:
    """One pass over the tokens of a text."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._text = source.text
        self._span = spans(source)
        self._position = 0
        self._found: list[Entry] = []

    def entries(self) -> tuple[Entry, ...]:
        """All entries, containers before their contents; raises DocumentError."""
        self._value(self._token("a value"), (), None)
        end = self._position
        token = self._token("the end of the file")
        if token["end"] is None:
            start = token.start(token.lastgroup or 0)
            if token["sign"] in ("{", "[") and "\n" in self._text[end:start]:
                raise DataError("contains several values (JSON Lines)", self._line(start))
            raise self._error(start, "the end of the file")
        return tuple(self._found)

    def _token(self, expected: str) -> re.Match[str]:
        """The next token, comments skipped."""
        while True:
            match = _TOKEN.match(self._text, self._position)
            if match is not None:
                self._position = match.end()
                return match
            # It matches where there is no blank, too.
            blanks = cast("re.Match[str]", _BLANKS.match(self._text, self._position))
            self._position = self._behind_comment(blanks.end(), expected)

    def _behind_comment(self, start: int, expected: str) -> int:
        """The end of the comment at a position; raises DocumentError if there is none."""
        if self._text.startswith(("//", "#"), start):
            end = _LINE_END.search(self._text, start)
            return end.start() if end else len(self._text)
        if self._text.startswith("/*", start) and (end_of_block := self._text.find("*/", start + 2)) >= 0:
            return end_of_block + 2
        raise self._error(start, expected)

    def _value(self, token: re.Match[str], path: Path, key: Span | None) -> None:
        """Read the value that begins with a token, with its contents."""
        kind = token.lastgroup or ""
        start, end = token.span(kind)
        if kind == "string":
            text = token["string"]
            value = text[1:-1] if "\\" not in text else json.loads(text)
            self._found.append(Entry(path, Shape.SCALAR, value, value, self._span(start, end), key))
        elif kind == "number":
            self._found.append(Entry(path, Shape.SCALAR, _number(token["number"]), token["number"], self._span(start, end), key))
        elif kind == "word":
            self._found.append(Entry(path, Shape.SCALAR, _WORDS[token["word"]], token["word"], self._span(start, end), key))
        elif token["sign"] in ("{", "["):
            self._container(start, token["sign"], path, key)
        else:
            raise self._error(start, "a value")

    def _container(self, start: int, opening: str, path: Path, key: Span | None) -> None:
        if len(path) >= MAX_DEPTH:
            raise DocumentError("contains too deeply nested values", self._line(start))
        place = len(self._found)
        shape = Shape.MAPPING if opening == "{" else Shape.SEQUENCE
        # It comes before its contents; the end is still unknown.
        self._found.append(Entry(path, shape, None, "", self._span(start, start + 1), key))
        if opening == "{":
            self._pairs(path)
        else:
            self._items(path)
        self._found[place] = Entry(path, shape, None, "", self._span(start, self._position), key)

    def _pairs(self, path: Path) -> None:
        while (token := self._token("a key in double quotes or `}`"))["sign"] != "}":
            if token["string"] is None:
                raise self._error(token.start(token.lastgroup or 0), "a key in double quotes or `}`")
            name = json.loads(token["string"])
            key = self._span(*token.span("string"))
            colon = self._token("`:` after the key")
            if colon["sign"] != ":":
                raise self._error(colon.start(colon.lastgroup or 0), "`:` after the key")
            self._value(self._token("a value"), (*path, name), key)
            if self._closed_by("}"):
                return

    def _items(self, path: Path) -> None:
        index = 0
        while (token := self._token("a value or `]`"))["sign"] != "]":
            self._value(token, (*path, index), None)
            index += 1
            if self._closed_by("]"):
                return

    def _closed_by(self, closing: str) -> bool:
        """Whether the container ends after a value; raises DocumentError if it neither ends nor continues."""
        token = self._token(f"`,` or `{closing}`")
        if token["sign"] not in (",", closing):
            raise self._error(token.start(token.lastgroup or 0), f"`,` or `{closing}`")
        return bool(token["sign"] == closing)

    def _line(self, index: int) -> int:
        return self._source.position(self._span(index, index).start)[0]

    def _error(self, index: int, expected: str) -> DocumentError:
        placeholder = bare_placeholder(self._text, index)
        if placeholder is not None:
            return placeholder.error(self._line(index))
        return DocumentError(f"not JSON: {expected} expected", self._line(index))


def _number(text: str) -> object:
    try:
        return float(text) if any(letter in ".eE" for letter in text) else int(text)
    except ValueError:
        # Python refuses to convert integers of thousands of digits.
        return text
