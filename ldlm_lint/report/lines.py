"""Lines of a report as pieces with styles: written as they are, or coloured by rich, which is loaded only for that."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.text import Text

Piece = tuple[str, str]
"""A text and its style, as rich writes styles; an empty one has no effect."""
Line = tuple[Piece, ...]


def line(*pieces: str | Piece) -> Line:
    """A line of pieces; a text alone has no style."""
    return tuple((piece, "") if isinstance(piece, str) else piece for piece in pieces)


def stripped(pieces: Line) -> Line:
    """A line without the blanks at its end.

    >>> stripped((("a ", "bold"), (" ", "")))
    (('a', 'bold'),)
    """
    while pieces and not pieces[-1][0].rstrip():
        pieces = pieces[:-1]
    return (*pieces[:-1], (pieces[-1][0].rstrip(), pieces[-1][1])) if pieces else ()


def wrapped(text: str, width: int) -> list[str]:
    """A text as lines of at most ``width`` characters; words, such as addresses and names with hyphens, stay whole."""
    import textwrap

    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)


def styled(lines: Iterable[Line]) -> Text:
    """Lines as rich's text."""
    from rich.text import Text

    return Text("\n").join(Text.assemble(*pieces) for pieces in lines)


def write(blocks: Iterable[Iterable[Line]], stream: TextIO, *, colour: bool) -> None:
    """Write blocks of lines to a stream, styled where ``colour`` is wanted; a line is never wrapped."""
    if not colour:
        for block in blocks:
            stream.write("".join(f"{''.join(text for text, _ in pieces)}\n" for pieces in block))
        return
    from ldlm_lint.report.console import console_of

    console = console_of(stream, colour=True)
    for block in blocks:
        console.print(styled(block), soft_wrap=True)
