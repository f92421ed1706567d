"""Writes a changed text back into the file of its notebook: only the sources of changed cells are rewritten.

Outputs, metadata, ids, the order of keys, indentation and the end of the file do not change. Unchanged lines of a
changed cell do not change either; new ones follow the style of the file: as a list of lines or as one string, with the
same blanks between them, non-ASCII letters plain or escaped.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from ldlm_lint.notebooks import document, is_notebook
from ldlm_lint.notebooks.document import Cell, Notebook, NotebookError
from ldlm_lint.notebooks.text import cell_texts, python_text
from ldlm_lint.patterns import lazily

_ESCAPED = lazily(r"(?<!\\)(?:\\\\)*\\u(?!00[0-7])[0-9a-fA-F]{4}")
_LINE = lazily(r"[^\n]*\n|[^\n]+\Z")


def as_stored(
    before: Mapping[str, bytes], after: Mapping[str, bytes]
) -> tuple[Mapping[str, bytes], Mapping[str, bytes]]:
    """Old and new contents of files as on disk, for notebooks their JSON, for those in ``after``.

    Raises NotebookError, which begins with the path, for a notebook that no longer holds the code in ``before``.
    """
    if not any(map(is_notebook, after)):
        return before, after
    old, new = dict(before), dict(after)
    for path in filter(is_notebook, after):
        try:
            data = Path(path).read_bytes()
            if python_text(data) != before[path]:
                raise NotebookError("changed since it was read")
            old[path], new[path] = data, rewritten(data, after[path])
        except (OSError, NotebookError) as error:
            raise NotebookError(f"{path}: {error}") from error
    return old, new


def rewritten(data: bytes, text: bytes) -> bytes:
    """The bytes of a notebook's file whose code is to be ``text``; raises NotebookError if the cells do not fit."""
    notebook = document.read(data)
    parts, done = [], 0
    for start, end, value in changes(notebook, text):
        parts += [notebook.text[done:start], value]
        done = end
    new = notebook.bom + "".join((*parts, notebook.text[done:])).encode()
    if {cell.number: cell.text for cell in document.read(new).cells} != cell_texts(text):
        raise NotebookError("the code would not be read again as it was written")
    return new


def changes(notebook: Notebook, text: bytes) -> Iterator[tuple[int, int, str]]:
    """The changed cell values for the new code ``text``: ranges and replacements.

    Raises NotebookError if the cells do not fit.
    """
    texts = cell_texts(text)
    if [cell.number for cell in notebook.cells] != list(texts):
        raise NotebookError("the cells are not those of the notebook")
    for cell in notebook.cells:
        if texts[cell.number] != cell.text:
            yield cell.start, cell.end, _source(notebook, cell, texts)


def pieces(text: str, start: int) -> tuple[list[str], list[tuple[int, int]]]:
    """The strings of a JSON list and their places."""
    values: list[str] = []
    places: list[tuple[int, int]] = []

    def visit(at: int) -> int:
        value, end = document.skip(text, at)
        values.append(value)
        places.append((at, end))
        return end

    document.items(text, start, visit)
    return values, places


def _source(notebook: Notebook, cell: Cell, texts: Mapping[int, str]) -> str:
    """The JSON value of a cell's new text."""
    escaped = notebook.text.isascii() and _ESCAPED.search(notebook.text) is not None
    new = texts[cell.number]
    if notebook.text[cell.start] != "[":
        return json.dumps(new, ensure_ascii=escaped)
    lines = _LINE.findall(new)
    if not lines:
        return "[]"
    old, places = pieces(notebook.text, cell.start)
    written = [json.dumps(line, ensure_ascii=escaped) for line in lines]
    matcher = difflib.SequenceMatcher(None, old, lines, autojunk=False)
    for first, second, size in matcher.get_matching_blocks():
        for at in range(size):
            start, end = places[first + at]
            written[second + at] = notebook.text[start:end]
    before, between, after = _layout(notebook, cell, places)
    return f"[{before}{between.join(written)}{after}]"


def _layout(notebook: Notebook, cell: Cell, places: list[tuple[int, int]]) -> tuple[str, str, str]:
    """The text before, between and after the lines of a list; an empty list uses that of another cell."""
    text = notebook.text
    if not places:
        for other in notebook.cells:
            if text[other.start] == "[" and (found := pieces(text, other.start)[1]):
                return _layout(notebook, other, found)
        return "", ", ", ""
    start, end = cell.start, cell.end
    before = text[start + 1 : places[0][0]]
    between = text[places[0][1] : places[1][0]] if len(places) > 1 else f",{before or ' '}"
    return before, between, text[places[-1][1] : end - 1]
