"""The tokens of an expression, and the pieces between its last brackets: arguments, elements, entries, parameters."""

from __future__ import annotations

import io
import itertools
import tokenize
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ldlm_lint.patterns import lazily

NEWLINE = lazily(r"\r\n|\r|\n")
BLANK = frozenset({tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT})
_READ = frozenset({tokenize.NAME, tokenize.OP})
_OPEN, _CLOSE = frozenset("([{"), frozenset(")]}")


class Token(NamedTuple):
    """A token with its kind and its half-open range of characters in the call.

    ``text`` is empty unless it is a name or an operator: pieces of an f-string may look like either.
    """

    kind: int
    text: str
    start: int
    end: int


class Piece(NamedTuple):
    """What is between two commas: its name before ``=``, if it has one, and where it, its value, and both end (characters)."""

    name: str
    start: int
    value: int
    end: int


def tokens_of(text: str) -> list[Token] | None:
    """The tokens of an expression; parentheses around it keep line breaks from ending it."""
    wrapped = "(" + NEWLINE.sub("\n", text) + "\n)"
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(wrapped).readline))
    except (tokenize.TokenError, SyntaxError):
        return None
    closing = max((index for index, token in enumerate(tokens) if token.string == ")"), default=0)
    result = _tokens(text, tokens[1:closing], 1)
    while result and result[-1].kind in BLANK:
        result.pop()
    return result


def line_of_tokens(text: str) -> list[Token]:
    """The tokens of the logical line that a text begins with; empty for one that cannot be cut."""
    tokens = tokenize.generate_tokens(io.StringIO(NEWLINE.sub("\n", text)).readline)
    try:
        line = itertools.takewhile(lambda one: one.type not in (tokenize.NEWLINE, tokenize.ENDMARKER), tokens)
        return [one for one in _tokens(text, line, 0) if one.kind not in BLANK]
    except (tokenize.TokenError, SyntaxError):
        return []


def _tokens(text: str, tokens: Iterable[tokenize.TokenInfo], before: int) -> list[Token]:
    """Tokens by their characters in a text, whose first line had ``before`` further ones."""
    starts = [-before, *(match.end() for match in NEWLINE.finditer(text))]

    def offset(position: tuple[int, int]) -> int:
        return starts[position[0] - 1] + position[1]

    return [Token(one.type, one.string if one.type in _READ else "", offset(one.start), offset(one.end)) for one in tokens]


def pieces_of(tokens: Sequence[Token], sign: str = "=") -> list[Piece]:
    """The pieces between the brackets that tokens end with; ``sign`` is before their values."""
    pieces: list[Piece] = []
    piece: list[tuple[Token, int]] = []
    parameters = False
    for token, depth in between_brackets(tokens):
        parameters = (depth == 0 and token.text == "lambda") or (parameters and not (depth == 0 and token.text == ":"))
        if depth == 0 and token.text == "," and not parameters:
            pieces.append(_piece(piece, sign))
            piece = []
        elif token.kind not in BLANK:
            piece.append((token, depth))
    return [*pieces, _piece(piece, sign)] if piece else pieces


def between_brackets(tokens: Sequence[Token]) -> list[tuple[Token, int]]:
    """The tokens between the brackets that others end with, each with the number of further brackets around it."""
    if not tokens or tokens[-1].text not in _CLOSE:
        return []
    depths = depths_of(tokens)
    first = max(index for index, token in enumerate(tokens) if token.text in _OPEN and depths[index] == 0)
    return [(token, depth - 1) for token, depth in zip(tokens[first + 1 : -1], depths[first + 1 : -1], strict=True)]


def _piece(tokens: Sequence[tuple[Token, int]], sign: str) -> Piece:
    first = tokens[0][0]
    is_named = sign == ":" or (len(tokens) > 1 and tokens[1][0].text in ("=", ":"))
    mark = next((index for index, (token, depth) in enumerate(tokens) if depth == 0 and token.text == sign), -1) if is_named else -1
    return Piece(first.text if mark > 0 else "", first.start, tokens[mark + 1][0].start, tokens[-1][0].end)


def signature_of(line: Sequence[Token]) -> Sequence[Token]:
    """The tokens of a line that begins with ``def``, up to the end of its parameters."""
    depths = depths_of(line)
    return line[: next((index for index, token in enumerate(line) if token.text == ")" and depths[index] == 0), -1) + 1]


def value_bound_by(line: Sequence[Token]) -> Sequence[Token]:
    """The tokens of the value of an assignment, whose tokens begin with its target; empty for any other line."""
    depths = depths_of(line)
    if min(depths, default=0) < 0:
        return ()
    stop = next((index for index, token in enumerate(line) if token.text in ("lambda", ";")), len(line))
    signs = [index for index in range(stop) if depths[index] == 0 and line[index].text == "="]
    end = next((index for index in range(stop, len(line)) if depths[index] == 0 and line[index].text == ";"), len(line))
    return line[signs[-1] + 1 : end] if signs else ()


def depths_of(tokens: Sequence[Token]) -> list[int]:
    """For each token the number of brackets around it; a bracket counts as outside of itself."""
    depth, depths = 0, []
    for token in tokens:
        depth -= token.text in _CLOSE
        depths.append(depth)
        depth += token.text in _OPEN
    return depths
