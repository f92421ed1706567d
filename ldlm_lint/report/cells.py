"""Text of an untrusted file as cells of a terminal: tabs expanded, control sequences removed."""

from __future__ import annotations

import unicodedata

TAB = 4
_PICTURES = 0x2400
_DELETE = "\x7f"


def clean(text: str) -> str:
    """The text with tabs as blanks and control characters as visible signs.

    An escape sequence in a linted file must not reach the terminal, nor may a character that reverses the text
    direction. The cleaned text of a prefix is a prefix of the cleaned text, so that columns add up.
    """
    if text.isprintable():
        return text
    # Imported here, since nearly no text needs it and formats for programs do without rich.
    from rich.cells import cell_len

    result: list[str] = []
    column = 0
    for letter in text:
        shown = " " * (TAB - column % TAB) if letter == "\t" else _visible(letter)
        result.append(shown)
        column += cell_len(shown)
    return "".join(result)


def width(text: str) -> int:
    """How many cells the cleaned text takes."""
    if text.isascii() and text.isprintable():
        return len(text)
    from rich.cells import cell_len

    return cell_len(clean(text))


def cut(text: str, cells: int) -> str:
    """A cleaned text in exactly that many cells: its beginning, or the whole with blanks after it."""
    if text.isascii():
        return f"{text[:cells]:{cells}}"
    from rich.cells import set_cell_size

    return set_cell_size(text, cells)


def _visible(letter: str) -> str:
    if letter == _DELETE:
        return chr(_PICTURES + 0x21)
    if letter < " ":
        return chr(_PICTURES + ord(letter))
    # Cc: control, Cf: format (direction marks among them), Cs: half of a pair, Zl and Zp: line separators.
    return "\ufffd" if unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Zl", "Zp") else letter
