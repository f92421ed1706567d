"""The code cells of a notebook as one Python text, with marks where its cells begin.

Each cell is after a comment with its number, so that the cells of the text are found again after any edit, and an edit
that would join two of them is detected. A cell that is not Python even without its magics is hidden as a whole, with
the error in the comment before it: the other cells are checked.
"""

from __future__ import annotations

import re
import textwrap
from typing import NamedTuple

from ldlm_lint.notebooks import document, magics
from ldlm_lint.notebooks.document import Cell, NotebookError
from ldlm_lint.patterns import lazily

MAX_CODE = 5_000_000
_MARK = "\x01"
# Two lines, so that no text in the first cell is read as the encoding.
_HEAD = f"# %% notebook{_MARK}"
_HEADER = _HEAD.encode()
_BREAK = lazily(rf"^# %% \[cell (\d+)\]{_MARK}(?: not parsed, line (\d+): ([^\r\n]*))?(?:\r\n|\r|\n)".encode(), re.MULTILINE)
_FROZEN = lazily(rf"^[^\r\n]*[{_MARK}{magics.MARK}][^\r\n]*".encode(), re.MULTILINE)
_CELL_MAGIC = f"#{magics.MARK}%%".encode()
_NEWLINE = lazily(r"\r\n|\r|\n")


class Part(NamedTuple):
    """A cell in the text: its number in the notebook, the bytes ``[start, end)`` of its lines.

    ``error`` says why it is hidden, ``error_line`` at which of its lines (from 1).
    """

    number: int
    start: int
    end: int
    error_line: int = 0
    error: str = ""


def is_text(data: bytes) -> bool:
    """Whether bytes are such a text, not a file."""
    return data.startswith(_HEADER)


def python_text(data: bytes) -> bytes:
    """The text of a notebook's file; one that is such a text already stays. Raises NotebookError."""
    if is_text(data):
        return data
    cells = document.read(data).cells
    size = sum(len(cell.text) for cell in cells)
    if size > MAX_CODE:
        raise NotebookError(f"its code is larger than {MAX_CODE:,} characters ({size:,})")
    for cell in cells:
        if _MARK in cell.text or magics.MARK in cell.text or "\0" in cell.text:
            raise NotebookError(f"cell {cell.number} contains control characters")
    first = next((match.group() for cell in cells if (match := _NEWLINE.search(cell.text))), "\n")
    first = first if "\n" in first else "\n"
    joined = _joined([(cell, magics.masked(cell.text), None) for cell in cells], first)
    if not magics.parses(joined) or any(cell.text.rstrip("\r\n").endswith("\\") for cell in cells):
        joined = _joined([_checked(cell) for cell in cells], first)
    return joined.encode()


def parts(data: bytes) -> tuple[Part, ...]:
    """The cells of a text."""
    found = list(_BREAK.finditer(data))
    ends = [*(match.start() for match in found[1:]), *([len(data)] if found else [])]
    return tuple(
        Part(int(match[1]), match.end(), max(end, match.end()), int(match[2] or 0), (match[3] or b"").decode())
        for match, end in zip(found, ends, strict=True)
    )


def cell_texts(data: bytes) -> dict[int, str]:
    """The text of each cell as in the notebook, by its number."""
    newline = b"\r\n" if data.startswith(_HEADER + b"\r\n") else b"\n"
    chunks = {part.number: data[part.start : part.end] for part in parts(data)}
    # A fix ends its lines as the file's first line does, or with a line feed.
    ended = {at: text.removesuffix(newline if text.endswith(newline) else b"\n") for at, text in chunks.items()}
    return {at: magics.restored(text.decode()) for at, text in ended.items()}


def _checked(cell: Cell) -> tuple[Cell, str, tuple[int, str] | None]:
    text = magics.masked(cell.text)
    failure = magics.failure(text)
    if failure and magics.parses(textwrap.dedent(text)):
        # IPython removes the indentation and runs it, so it is not an error; it is skipped.
        return cell, magics.hidden(cell.text), None
    return cell, magics.hidden(cell.text) if failure else text, failure


def _joined(cells: list[tuple[Cell, str, tuple[int, str] | None]], newline: str) -> str:
    pieces = [_HEAD + newline]
    for cell, text, failure in cells:
        why = f" not parsed, line {failure[0]}: {_NEWLINE.sub(' ', failure[1])}" if failure else ""
        pieces.append(f"# %% [cell {cell.number}]{_MARK}{why}{newline}{text}{newline}")
    return "".join(pieces)


def frozen(data: bytes) -> list[bytes]:
    """The parts of a text that no edit may change: the bounds of its cells, the commands of IPython, a cell magic at
    the top."""
    lines = [match.group() for match in _FROZEN.finditer(data)]
    tops = (data[part.start : part.start + len(_CELL_MAGIC)] == _CELL_MAGIC for part in parts(data))
    return [*lines, *(b"%%" if top else b"" for top in tops)]


def untouched(data: bytes, start: int, end: int) -> bool:
    """Whether an edit of the bytes ``[start, end)`` does not touch `frozen` parts."""
    first = max(data.rfind(b"\n", 0, start), data.rfind(b"\r", 0, start)) + 1
    for match in _FROZEN.finditer(data, first):
        if match.start() > end:
            break
        if start == end == match.start():
            return not match.group().startswith(_CELL_MAGIC)
        if start < match.end() + 1 and end > match.start():
            return False
    return True
