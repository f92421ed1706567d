"""Shell words: relevant commands and values parsed with bashlex.

bashlex parses words well and whole scripts badly, so it only gets one simple command or one value, with unreadable text
masked first. All positions are character offsets into the given text.
"""

from __future__ import annotations

import functools
import re
from types import ModuleType
from typing import Any, NamedTuple

from ldlm_lint.patterns import lazily
from ldlm_lint.shell.plain_words import PlainWord, plain_words
from ldlm_lint.shell.quotes import unquoted

_PLAIN = lazily(r"[\w./:,@%+=^-]*")
_QUOTED = lazily(r"'([^']*)'|\"([^\"$`\\]*)\"")
_PARAMETER = lazily(r"(\"?)\$(?:\{(\w+)\}|([A-Za-z_]\w*))\1")
_DEFAULT = lazily(r"(\"?)\$\{(\w+):?[-=](.*)\}\1", re.DOTALL)
_UNREADABLE = ("$'", '$"', "`", "$(", "\n")
_MARKED = lazily(r"['\"\\]")
_MASK = "x"
MAX_CHARACTERS = 20_000
# `${A:-${B:-…}}` nested deeper than this is unknown.
_DEPTH = 20
_DEEPEST = 8
_NESTING = lazily(r"[$<>]\(|\$\{|[)}]")


class Piece(NamedTuple):
    """A word or prefix assignment of a command; ``text`` has its quotes removed and its expansions kept."""

    start: int
    end: int
    text: str
    literal: bool


class Command(NamedTuple):
    """A simple command: its prefix assignments and its words, without redirections."""

    assignments: tuple[Piece, ...]
    words: tuple[Piece, ...]


class Literal(NamedTuple):
    """A literal value; ``start`` and ``end`` enclose the text to replace, without plain quotes."""

    text: str
    start: int
    end: int
    is_default: bool = False


class Reference(NamedTuple):
    """A value that is exactly another variable."""

    name: str


def mask_arithmetic(text: str) -> str:
    """Replace every ``$((…))`` by word characters of the same length.

    Blanks would change the number of words: an option would consume the one after it.
    """
    parts, position = [], 0
    while (start := text.find("$((", position)) >= 0:
        end = closing(text, start + 1)
        if end < 0:
            break
        parts += [text[position:start], _MASK * (end - start)]
        position = end
    return "".join([*parts, text[position:]])


def closing(text: str, start: int) -> int:
    """The offset after the parenthesis closing the one at ``start``, -1 if there is none."""
    depth = 0
    for index in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[index], 0)
        if depth == 0:
            return index + 1
    return -1


@functools.lru_cache(1024)
def read_command(text: str) -> Command | None:
    """Split one simple command into its assignments and words; None if bashlex cannot read it as one."""
    plain = _plain(text)
    if plain is not None:
        halves = [[Piece(*one[:4]) for one in plain if one.assigns is assigns] for assigns in (True, False)]
        return Command(*map(tuple, halves)) if plain else None
    tree = _parse(mask_arithmetic(text))
    if tree is None or tree.kind != "command":
        return None
    pieces: dict[str, list[Piece]] = {"assignment": [], "word": []}
    for part in tree.parts:
        if part.kind in pieces:
            pieces[part.kind].append(_piece(part, text))
    return Command(tuple(pieces["assignment"]), tuple(pieces["word"]))


@functools.lru_cache(1024)
def assignment_end(text: str) -> int | None:
    """The end of the assignment at the start of the text; text after the command does not matter."""
    plain = _plain(text)
    if plain is not None:
        return plain[0].end if plain and plain[0].assigns else None
    tree = _parse(mask_arithmetic(text))
    while tree is not None and tree.kind in ("list", "pipeline"):
        tree = tree.parts[0]
    first = tree.parts[0] if tree is not None and tree.kind == "command" else None
    return first.pos[1] if first is not None and first.kind == "assignment" else None


def read_word(raw: str) -> str:
    """A word without its quotes, expansions as written; the word itself if a quote in it is not closed."""
    if not _MARKED.search(raw):
        return raw
    read = unquoted(raw)
    return raw if read is None else read


def _piece(part: Any, text: str) -> Piece:
    start, end = part.pos
    raw = text[start:end]
    masked = "$((" in raw
    return Piece(start, end, raw if masked else read_word(raw), not masked and not part.parts)


def is_too_deep(text: str) -> bool:
    """Whether substitutions are nested so deeply that bashlex, which reads each level again, would not come to an
    end.
    """
    depth = 0
    for match in _NESTING.finditer(text):
        depth = depth + 1 if len(match[0]) > 1 else max(depth - 1, 0)
        if depth > _DEEPEST:
            return True
    return False


@functools.cache
def _bashlex() -> ModuleType:
    """The parser, loaded when a word needs it: its tables take 0.16 s, more than parsing most scripts.

    At an unclosed ``${`` it would return to the beginning of the word forever.
    """
    import bashlex
    from bashlex import subst

    expand = subst._paramexpand

    def advancing(parser: object, word: str, start: int) -> tuple[object, int]:
        node, end = expand(parser, word, start)
        if end <= start:
            raise ValueError(f"the parameter at {start} is never closed")
        return node, end

    subst._paramexpand = advancing
    return bashlex


def _plain(text: str) -> tuple[PlainWord, ...] | None:
    """The words of a command that bashlex is not needed for."""
    return None if "$((" in text or len(text) > MAX_CHARACTERS or is_too_deep(text) else plain_words(text)


def _parse(text: str) -> Any:
    if len(text) > MAX_CHARACTERS or is_too_deep(text):
        return None
    try:
        trees = _bashlex().parse(text)
    except Exception:  # bashlex raises IndexError, AttributeError, AssertionError … on text outside of its grammar
        return None
    return trees[0] if len(trees) == 1 else None


def read_value(raw: str, depth: int = 0) -> Literal | Reference | None:
    """The value of the right side of an assignment; None if the text alone does not determine it."""
    if _PLAIN.fullmatch(raw):
        return Literal(raw, 0, len(raw))
    if match := _QUOTED.fullmatch(raw):
        return Literal(raw[1:-1], 1, len(raw) - 1)
    if match := _PARAMETER.fullmatch(raw):
        return Reference(match[2] or match[3])
    if match := _DEFAULT.fullmatch(raw):
        told = depth < _DEPTH and _balanced(match[3])
        return _default(match[3], match.start(3), depth + 1) if told else None
    return _literal_word(raw)


def _default(raw: str, shift: int, depth: int) -> Literal | Reference | None:
    known = read_value(raw, depth)
    if isinstance(known, Literal):
        return Literal(known.text, known.start + shift, known.end + shift, is_default=True)
    return known


def _balanced(text: str) -> bool:
    depth = 0
    for character in text:
        depth += {"{": 1, "}": -1}.get(character, 0)
        if depth < 0:
            return False
    return depth == 0


def _literal_word(raw: str) -> Literal | None:
    if any(mark in raw for mark in _UNREADABLE) or raw.startswith("("):
        return None
    if "$" in raw and "'" not in raw and "\\" not in raw:
        return None
    plain = _plain(f"x {raw}")
    if plain is not None:
        fits = len(plain) == 2 and plain[1].literal and plain[1].end == 2 + len(raw)
        return Literal(plain[1].text, 0, len(raw)) if fits else None
    tree = _parse(f"x {raw}")
    if tree is None or tree.kind != "command" or len(tree.parts) != 2:
        return None
    word = tree.parts[1]
    if word.kind != "word" or word.parts or word.pos != (2, 2 + len(raw)):
        return None
    return Literal(read_word(raw), 0, len(raw))
