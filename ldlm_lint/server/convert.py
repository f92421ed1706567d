"""Plain values as the types of the protocol, and the actions that an editor may offer at a position."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from lsprotocol import types

FIX_ALL = "source.fixAll.ldlm-lint"
_SOURCE = "ldlm-lint"
_ANNOTATION = "fix"

Edits = Sequence[Mapping[str, Any]]
"""Edits in the shape of the protocol, each with its path and notebook cell."""
UriOf = Callable[[str, "int | None"], str]
"""The URI of a file or, given its number, of a cell of a notebook."""


def range_of(value: Mapping[str, Any]) -> types.Range:
    """A range."""
    start, end = value["start"], value["end"]
    return types.Range(types.Position(start["line"], start["character"]), types.Position(end["line"], end["character"]))


def diagnostic(value: Mapping[str, Any], uri_of: UriOf, related: bool) -> types.Diagnostic:
    """A diagnostic; ``related`` says whether the editor can show other places."""
    places = [
        types.DiagnosticRelatedInformation(
            types.Location(uri_of(one["path"], one["cell"]), range_of(one["range"])), one["message"]
        )
        for one in value["related"]
    ]
    return types.Diagnostic(
        range=range_of(value["range"]),
        message=value["message"],
        severity=types.DiagnosticSeverity(value["severity"]),
        code=value["code"],
        code_description=types.CodeDescription(value["href"]),
        source=value["source"],
        tags=[types.DiagnosticTag(tag) for tag in value["tags"]] or None,
        related_information=places if related and places else None,
        data=value["data"],
    )


def fault(line: int, message: str) -> types.Diagnostic:
    """The diagnostic for a line (1-based) of a configuration file."""
    where = types.Range(types.Position(line - 1, 0), types.Position(line, 0))
    return types.Diagnostic(where, message, severity=types.DiagnosticSeverity.Error, source=_SOURCE)


def workspace_edit(
    edits: Edits,
    uri_of: UriOf,
    version_of: Callable[[str], int | None],
    versioned: bool,
    annotation: types.ChangeAnnotation | None = None,
) -> types.WorkspaceEdit:
    """Edits of several documents, with the versions of open ones if the editor supports them (``versioned``).

    With an ``annotation`` each of them has it: the effect and, as its description, what it may change.
    """
    made: dict[str, list[types.TextEdit]] = {}
    for one in edits:
        edit = types.TextEdit(range_of(one["range"]), one["newText"])
        made.setdefault(uri_of(one["path"], one["cell"]), []).append(edit)
    if not versioned:
        return types.WorkspaceEdit(changes=made)
    return types.WorkspaceEdit(
        document_changes=[
            types.TextDocumentEdit(types.OptionalVersionedTextDocumentIdentifier(uri, version_of(uri)), _annotated(found, annotation))
            for uri, found in made.items()
        ],
        change_annotations={_ANNOTATION: annotation} if annotation is not None else None,
    )


def _annotated(
    edits: Sequence[types.TextEdit], annotation: types.ChangeAnnotation | None
) -> list[types.TextEdit | types.AnnotatedTextEdit | types.SnippetTextEdit]:
    return [one if annotation is None else types.AnnotatedTextEdit(_ANNOTATION, one.range, one.new_text) for one in edits]


def overlaps(value: Mapping[str, Any], other: types.Range) -> bool:
    """Whether two ranges have a place in common, ends included: a cursor is an empty range."""
    start, end = value["start"], value["end"]
    first, last = (start["line"], start["character"]), (end["line"], end["character"])
    return first <= (other.end.line, other.end.character) and (other.start.line, other.start.character) <= last


def wanted(kind: str, only: Sequence[str] | None) -> bool:
    """Whether an editor that asks for some kinds of actions asks for this one."""
    return only is None or any(not one or kind == one or kind.startswith(one + ".") for one in only)


def fixes_at(diagnosis: Mapping[str, Any], where: types.Range, cell: int | None) -> Iterator[Mapping[str, Any]]:
    """The fixes of the diagnostics at a place of a document, safe ones first."""
    here = {index for index, _ in diagnostics_at(diagnosis, where, cell)}
    found = [one for one in diagnosis["fixes"] if not here.isdisjoint(one["diagnostics"])]
    yield from sorted(found, key=lambda one: ("safe", "unsafe", "display").index(one["level"]))


def diagnostics_at(
    diagnosis: Mapping[str, Any], where: types.Range, cell: int | None
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The diagnostics at a place of a document, with their indices."""
    for index, one in enumerate(diagnosis["diagnostics"]):
        if one["cell"] == cell and overlaps(one["range"], where):
            yield index, one
