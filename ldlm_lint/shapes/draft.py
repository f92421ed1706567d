"""The functions of a Python file by its text alone, before it is parsed: where they may begin and end, and their
parameters.

The result has too many functions for a place, never too few: a missing function loses a finding. Ambiguous text counts
as everything that it may be, and a text with much ambiguity has no draft.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property, lru_cache
from keyword import iskeyword
from typing import NamedTuple

from ldlm_lint.patterns import lazily
from ldlm_lint.python.definitions import outside_of
from ldlm_lint.python.skim import headers
from ldlm_lint.shapes.draft_bodies import Body, body_of

# A definition whose name does not directly follow its keyword, or is not ASCII; unusual blanks.
_ODD = tuple(lazily(rb"%s(?:[ \t]*\\|[ \t]+\w*[\x80-\xff])" % one) for one in (b"def", b"class", b"async"))
# Every beginning of these has an end, so that the search never backtracks.
_STRINGS = lazily(
    rb"#[^\n]*|(\"\"\"|''')(?:[^\\\"']+|\\.?|(?!\1)[\"'])*(?:\1|\Z)|\"(?:[^\"\\\n]+|\\.?)*\"?|'(?:[^'\\\n]+|\\.?)*'?", re.S
)
_TRIPLES = (b'"""', b"'''")
_FORMATS = (b"f", b"F", b"t", b"T")
_UNPLAIN = (*_TRIPLES, b"\\\n")
_SHORT_STRING = lazily(rb"\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'")
_NAME = lazily(rb"[\w\x80-\xff]+")
_COMMENT = lazily(rb"#[^\n]*")
_HEADER_ENDS = lazily(rb":[ \t]*(?:#[^\n]*)?\n")
_DECORATOR = lazily(rb"[ \t]*@[ \t]*(?:\w+\.)*(\w+)(?:\([^()\"'#\\\n]*\))?[ \t]*(?:#[^\n\"']*)?")
_BRACKETS = ((b"(", b")"), (b"[", b"]"), (b"{", b"}"))


WORD = bytes((*b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_", *range(0x80, 0x100)))
"""The bytes of names."""
NAMELESS = b"."
"""Is written before the attributes of an element, a text or the result of a call."""
_BINDS = lazily(rb"(?:[ \t\n\\]|#[^\n]*\n)*(?:=(?!=)|:)")
_CHAINED = bytes((*WORD, *b"."))
_LETTERS = frozenset(bytes((one,)) for one in WORD)
_LAST = lazily(rb"[\w\x80-\xff]+(?=[ \t\\]*\Z)")
_BLANK = b" \t\\"
_MODELS = frozenset({b"Module", b"LightningModule", b"PreTrainedModel", b"ModelMixin"})
_BASES = lazily(rb"[ \t]*class[ \t]+\w+[ \t]*\(([^():]*)\)[ \t]*:")
_ATTRIBUTE = lazily(rb"(\w+)\.(?:\w+\.)*(\w+)")
_BRINGS = lazily(rb"import[ \t]*\([^()]*\)|import[^\n;(]*|class[ \t]+\w+[ \t]*\([^():]*\)[ \t]*:")


class Header(NamedTuple):
    """The line on which a function or class begins, the columns it is indented by, and its name."""

    start: int
    indent: int
    name: str
    is_class: bool


class Draft:
    """The definitions of one text in UTF-8 with Unix line ends."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._heads: dict[int, frozenset[bytes]] = {}
        self._bodies: dict[int, Body] = {}
        self._models: dict[int, int] = {}
        self._ends: dict[int, int] = {}

    @cached_property
    def headers(self) -> list[Header]:
        """The definitions in the order of the text, without those inside multi-line strings."""
        found = [Header(at, len(blanks.expandtabs()), name, is_class) for at, blanks, name, is_class in sorted(headers(self.data))]
        return [one for one in found if not self.is_text(one.start)]

    @cached_property
    def _texts(self) -> list[tuple[int, int]]:
        return _long_texts(self.data)

    def is_text(self, at: int) -> bool:
        """Whether a place is certainly in a multi-line string; not in one that may contain expressions."""
        number = bisect_right(self._texts, (at, at)) - 1
        return number >= 0 and at < self._texts[number][1]

    @cached_property
    def _starts(self) -> list[int]:
        return [one.start for one in self.headers]

    def words(self, word: bytes) -> Iterator[int]:
        """Where a word may be in the code of a text."""
        data, at = self.data, self.data.find(word)
        while at >= 0:
            end = at + len(word)
            whole = data[at - 1 : at] not in _LETTERS and data[end : end + 1] not in _LETTERS
            if whole and not self.is_text(at) and not self.is_remark(at):
                yield at
            at = data.find(word, end)

    def is_remark(self, at: int) -> bool:
        """Whether a place is in a comment for certain."""
        code, mark, _ = self.data[self.data.rfind(b"\n", 0, at) + 1 : at].partition(b"#")
        return bool(mark) and b"'" not in code and b'"' not in code

    def before(self, at: int) -> bytes | None:
        """The names and dots before a name, as ``a.b.``; empty if it is alone, `NAMELESS`, or None if unknown."""
        begin = self.data.rfind(b"\n", 0, at) + 1
        line = self.data[begin:at].rstrip(_CHAINED)
        names, blank = self.data[begin + len(line) : at], line.rstrip(_BLANK)
        if names.startswith(b".") or blank.endswith(b".") or (not blank and _goes_on(self.data, begin)):
            return NAMELESS if _is_nameless(blank.removesuffix(b".").rstrip(_BLANK)) else None
        return names

    def is_bound(self, at: int, name: bytes) -> bool:
        """Whether a name may be the target of an assignment at its place."""
        return _BINDS.match(self.data, at + len(name)) is not None

    def is_defined(self, at: int) -> bool:
        """Whether a name is that of a definition."""
        line = self.data[self.data.rfind(b"\n", 0, at) + 1 : at]
        return line.rstrip(_BLANK).endswith((b"def", b"class")) and line[-1:] in b" \t"

    def around(self, at: int) -> Iterator[int]:
        """The numbers of the headers whose definition may contain a place, innermost first."""
        number = bisect_right(self._starts, at) - 1
        # A decorator is above the function that it runs with.
        if number + 1 < len(self.headers) and self.data.find(b"@", self._starts[number] if number >= 0 else 0, at) >= 0:
            yield number + 1
        yield from self.chain(number)

    def chain(self, number: int) -> Iterator[int]:
        """A header and the less indented ones above, which may contain it."""
        indent = 1 << 30
        for one in range(number, -1, -1):
            if self.headers[one].indent < indent:
                indent = self.headers[one].indent
                yield one
            if not indent:
                return

    def end(self, number: int) -> int:
        """Where a definition has ended at the latest."""
        indent = self.headers[number].indent
        rest = range(number + 1, len(self.headers))
        return next((self.headers[one].start for one in rest if self.headers[one].indent <= indent), len(self.data))

    def head(self, number: int) -> bytes:
        """The text of a header up to its colon, or more."""
        start, data = self.headers[number].start, self.data
        for match in _HEADER_ENDS.finditer(data, start):
            text = data[start : match.end()]
            plain = _COMMENT.sub(b"", _SHORT_STRING.sub(b"", text))
            if all(plain.count(opening) <= plain.count(closing) for opening, closing in _BRACKETS):
                return data[start:] if any(one in text for one in _UNPLAIN) else text
        return data[start:]

    def taken(self, number: int) -> frozenset[bytes]:
        """The names in the parentheses of a header, including those of parameters and bases."""
        if number not in self._heads:
            self._heads[number] = frozenset(_NAME.findall(self.head(number).partition(b"(")[2]))
        return self._heads[number]

    @cached_property
    def whole(self) -> Body:
        """All of the text as one body."""
        return body_of(self._masked(0, len(self.data)), 0, -1)

    def body(self, number: int) -> Body:
        """The body of a definition, as far as its text shows."""
        if number not in self._bodies:
            start = self.headers[number].start
            self._bodies[number] = body_of(self._masked(start, self.end(number)), start, self.headers[number].indent)
        return self._bodies[number]

    def _masked(self, start: int, end: int) -> bytes:
        """A stretch that begins outside of any string, with multi-line strings blanked."""
        parts, at = [], start
        for first, last in self._texts[bisect_right(self._texts, (start, start)) :]:
            if first >= end:
                break
            parts += [self.data[at:first], b" " * (last - first)]
            at = last
        return b"".join([*parts, self.data[at:end]])[: end - start]

    def is_model(self, number: int) -> bool:
        """Whether a function is for certain a method of a class that is for certain a model, by the bases of that class itself."""
        holder = next((one for one in self.chain(number) if one != number), None)
        if holder is None or not self.headers[holder].is_class:
            return False
        if holder not in self._models:
            self._models[holder] = self._own_end(holder) if self._derives(holder) else -1
        return self.headers[number].start < self._models[holder]

    def _own_end(self, number: int) -> int:
        """The end of the part that certainly belongs to a definition."""
        if number not in self._ends:
            # A header may end on its line, and its body too.
            line = self.data.find(b"\n", self.headers[number].start)
            outside = outside_of(self.headers[number].indent).finditer(self.data, line) if line >= 0 else iter(())
            places = (one.start() + 1 for one in outside)
            self._ends[number] = next((at for at in places if not self.is_text(at)), len(self.data))
        return self._ends[number]

    def _derives(self, number: int) -> bool:
        match = _BASES.match(self.data, self.headers[number].start)
        return match is not None and any(map(self._is_model, map(bytes.strip, match[1].split(b","))))

    def _is_model(self, base: bytes) -> bool:
        match = _ATTRIBUTE.fullmatch(base)
        root, name = match.groups() if match else (base, base)
        if name not in _MODELS or any(one.is_class and one.name.encode() == root for one in self.headers):
            return False
        if re.search(rb"\bas\s+(?:Module|LightningModule|PreTrainedModel|ModelMixin)\b", self.data):
            return False
        return match is not None or re.search(rb"(?<![.\w`])%s(?!\w)" % name, _BRINGS.sub(b"", self.data)) is None

    def decoration(self, number: int) -> bytes:
        """The lines above a header as far as the next blank one, if a decorator is among them."""
        start = self.headers[number].start
        begin = max(self.data.rfind(b"\n\n", 0, start), 0)
        lines = self.data[begin:start]
        return lines if b"@" in lines else b""

    def decorators(self, number: int) -> Iterator[str]:
        """The last names of decorators that a definition has for certain."""
        end = self.headers[number].start
        while end:
            start = self.data.rfind(b"\n", 0, end - 1) + 1
            line = self.data[start : end - 1]
            match = _DECORATOR.fullmatch(line)
            if match is None:
                text = line.strip()
                if any(one in text for one in _TRIPLES) or not (text.startswith(b"#") or not text):
                    return
            elif self.data[start - 2 : start - 1] == b"\\":
                return
            else:
                yield match[1].decode(errors="replace")
            end = start


@lru_cache(maxsize=1)
def draft_of(data: bytes) -> Draft | None:
    """The draft of a text in UTF-8; None if it is too ambiguous."""
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if b"\f" in data or any(one.search(data) for one in _ODD):
        return None
    return Draft(data)


def _is_nameless(before: bytes) -> bool:
    """Whether the object of an attribute is an element, a text or the result of a call, and not a name in
    parentheses.
    """
    if not before.endswith(b")"):
        return before.endswith((b"]", b"}", b'"', b"'"))
    function = before[: before.rfind(b"(")] if b"(" in before else b""
    caller = _LAST.search(function)
    return function[-1:] in _LETTERS and caller is not None and not iskeyword(caller[0].decode(errors="replace"))


def _goes_on(data: bytes, begin: int) -> bool:
    """Whether the code above a line ends with a dot."""
    while begin:
        end, begin = begin, data.rfind(b"\n", 0, begin - 1) + 1
        line = data[begin:end].strip()
        if line and not line.startswith(b"#"):
            code, *rest = line.split(b"#")
            # Inside a string it does not begin a comment.
            parts = [code, *(rest if b"'" in code or b'"' in code else rest[:-1])]
            return any(one.rstrip(_BLANK).endswith(b".") for one in parts)
    return False


def _long_texts(data: bytes) -> list[tuple[int, int]]:
    """Where texts over several lines begin and end."""
    found = _paired(data)
    if found is None:
        found = [one.span() for one in _STRINGS.finditer(data) if one[1]]
    # ``f"""{model(x)}"""``
    return [one for one in found if data[one[0] - 1 : one[0]] not in _FORMATS and data[one[0] - 2 : one[0] - 1] not in _FORMATS]


def _paired(data: bytes) -> list[tuple[int, int]] | None:
    """As `_long_texts`, for simple sequences of quotes; None otherwise."""
    quotes = _TRIPLES[0]
    if _TRIPLES[1] in data or b"\\\n" in data or b'\\"""' in data:
        return None
    found, end, at = [], 0, data.find(quotes)
    while at >= 0:
        before = data[max(end, data.rfind(b"\n", 0, at) + 1) : at]
        close = data.find(quotes, at + 3)
        if b"#" in before or b"'" in before or b'"' in before or close < 0:
            return None
        end = close + 3
        found.append((at, end))
        at = data.find(quotes, end)
    return found
