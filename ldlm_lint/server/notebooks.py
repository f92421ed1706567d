"""Notebooks in the editor's protocol: a list of cells, each of them a document, and changes to the list."""

from __future__ import annotations

from collections.abc import Iterable

from lsprotocol import types

from ldlm_lint.server.papers import Cell, Paper
from ldlm_lint.server.positions import changed

SYNC = types.NotebookDocumentSyncOptions(
    notebook_selector=[
        types.NotebookDocumentFilterWithNotebook(notebook=types.NotebookDocumentFilterNotebookType("jupyter-notebook"))
    ],
    save=True,
)


def cells_of(listed: Iterable[types.NotebookCell], texts: Iterable[types.TextDocumentItem]) -> list[Cell]:
    """The cells of a notebook that was opened."""
    by_uri = {one.uri: one for one in texts}
    return [_cell(one, by_uri.get(one.document)) for one in listed]


def apply(paper: Paper, change: types.NotebookDocumentCellChanges, encoding: str) -> list[str]:
    """Apply an editor's change to a notebook's cells; returns the URIs of removed cells."""
    gone: list[str] = []
    if change.structure is not None:
        array = change.structure.array
        kept = {cell.uri: cell for cell in paper.cells}
        opened = {one.uri: one for one in change.structure.did_open or ()}
        new = [
            kept[one.document] if one.document in kept else _cell(one, opened.get(one.document))
            for one in array.cells or ()
        ]
        paper.cells[array.start : array.start + array.delete_count] = new
        gone = sorted(kept.keys() - {cell.uri for cell in paper.cells})
    by_uri = {cell.uri: cell for cell in paper.cells}
    for text in change.text_content or ():
        cell = by_uri.get(text.document.uri)
        if cell is not None:
            cell.version = text.document.version
            for one in text.changes:
                cell.text = _after(cell.text, one, encoding)
    return gone


def _cell(cell: types.NotebookCell, item: types.TextDocumentItem | None) -> Cell:
    if item is None:
        # Cells that are not synchronized keep their place, so that the others keep their numbers.
        return Cell(cell.document, "", 0, "")
    language = item.language_id if cell.kind == types.NotebookCellKind.Code else ""
    return Cell(item.uri, language, item.version, item.text)


def _after(text: str, change: types.TextDocumentContentChangeEvent, encoding: str) -> str:
    if isinstance(change, types.TextDocumentContentChangeWholeDocument):
        return change.text
    start, end = ({"line": one.line, "character": one.character} for one in (change.range.start, change.range.end))
    return changed(text, start, end, change.text, encoding)
