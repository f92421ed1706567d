"""The actions at a position in an editor: fixes with their safety, a comment that silences the line, all safe fixes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from ldlm_lint.server.convert import (
    FIX_ALL,
    Edits,
    diagnostic,
    diagnostics_at,
    fixes_at,
    wanted,
    workspace_edit,
)
from ldlm_lint.server.link import LinkError, UsageAnswer
from ldlm_lint.server.titles import fix_title, ignore_title

if TYPE_CHECKING:
    from ldlm_lint.server.app import Server
    from ldlm_lint.server.papers import Paper


async def offered(
    server: Server, paper: Paper, cell: int | None, where: types.Range, only: Sequence[str] | None
) -> list[types.CodeAction]:
    """The actions for a place of a buffer, or of a cell in it, whose diagnosis is fresh."""
    found: list[types.CodeAction] = []
    if wanted(types.CodeActionKind.QuickFix, only):
        found += _fixes(server, paper, cell, where)
        found += _ignores(paper, cell, where)
    if wanted(FIX_ALL, only) and any(fix["level"] == "safe" for fix in paper.diagnosis["fixes"]):
        found.append(_fix_all(paper))
    if not _resolves_later(server):
        found = [await resolved(server, action) for action in found]
    return [one for one in found if one.disabled is None or _shows_disabled(server)]


async def resolved(server: Server, action: types.CodeAction) -> types.CodeAction:
    """An action with its edit, which some get only once they are chosen; without one where the buffer has changed."""
    data: Mapping[str, Any] = action.data if isinstance(action.data, Mapping) else {}
    paper = server.papers.get(data.get("uri", ""))
    if action.edit is not None or paper is None or paper.version != data["version"]:
        return action
    request = {name: value for name, value in data.items() if name not in ("uri", "version")}
    try:
        answer = await server.ask(path=paper.path, **request)
    except (LinkError, UsageAnswer) as error:
        server.log(f"{action.title}: {error}", types.MessageType.Error)
        return action
    if paper.version != data["version"]:
        return action
    if answer["edits"]:
        action.edit = _edit(server, answer["edits"])
    elif answer["reason"]:
        action.disabled = types.CodeActionDisabled(answer["reason"])
    return action


def _fixes(server: Server, paper: Paper, cell: int | None, where: types.Range) -> Iterator[types.CodeAction]:
    for fix in fixes_at(paper.diagnosis, where, cell):
        chosen = [paper.diagnosis["diagnostics"][at] for at in fix["diagnostics"]]
        rules = list(dict.fromkeys(one["code"] for one in chosen))
        shown = [diagnostic(one, server.papers.uri_of, related=False) for one in chosen]
        if fix["level"] == "display":
            # It points to the place; only the author can decide what to do there.
            yield types.CodeAction(
                title=fix_title(fix, rules),
                kind=types.CodeActionKind.QuickFix,
                diagnostics=shown,
                disabled=types.CodeActionDisabled(fix["reason"] or "advice: no single edit is always right"),
            )
            continue
        yield types.CodeAction(
            title=fix_title(fix, rules),
            kind=types.CodeActionKind.QuickFix,
            diagnostics=shown,
            is_preferred=fix["level"] == "safe" or None,
            edit=_edit(server, fix["edits"], _annotation(fix)),
        )


def _annotation(fix: Mapping[str, Any]) -> types.ChangeAnnotation:
    """The text that an editor shows before it applies a fix: the whole title, and why it is not safe."""
    return types.ChangeAnnotation(label=fix["title"], description=fix["reason"] or None)


def _ignores(paper: Paper, cell: int | None, where: types.Range) -> Iterator[types.CodeAction]:
    if PurePath(paper.path).suffix.lower() == ".json":
        # It has no comments.
        return
    for index, one in diagnostics_at(paper.diagnosis, where, cell):
        yield types.CodeAction(
            title=ignore_title(one["code"]),
            kind=types.CodeActionKind.QuickFix,
            data={"uri": paper.uri, "version": paper.version, "do": "ignore", "finding": index},
        )


def _fix_all(paper: Paper) -> types.CodeAction:
    return types.CodeAction(
        title="ldlm-lint: apply all safe fixes of this file",
        kind=FIX_ALL,
        data={"uri": paper.uri, "version": paper.version, "do": "fix-all"},
    )


def _edit(server: Server, edits: Edits, annotation: types.ChangeAnnotation | None = None) -> types.WorkspaceEdit:
    workspace = server.client_capabilities.workspace
    capability = workspace.workspace_edit if workspace else None
    versioned = bool(capability and capability.document_changes)
    annotated = annotation if capability and capability.change_annotation_support else None
    return workspace_edit(edits, server.papers.uri_of, server.papers.version_of, versioned, annotated)


def _capability(server: Server) -> Any:
    document = server.client_capabilities.text_document
    return document.code_action if document else None


def _resolves_later(server: Server) -> bool:
    """Whether the editor requests the edit of an action after the user chooses it."""
    support = getattr(_capability(server), "resolve_support", None)
    return support is not None and "edit" in support.properties


def _shows_disabled(server: Server) -> bool:
    return bool(getattr(_capability(server), "disabled_support", None))
