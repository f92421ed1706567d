"""Handlers for the messages of the editor: opened, changed, saved, closed, requests."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

from lsprotocol import types

from ldlm_lint.select import SelectorError
from ldlm_lint.server import actions, hover, notebooks
from ldlm_lint.server.app import TYPING, Server
from ldlm_lint.server.convert import FIX_ALL, wanted
from ldlm_lint.server.papers import notebook_text
from ldlm_lint.server.settings import Settings

RULES, RULE = "ldlm-lint/rules", "ldlm-lint/rule"
"""The requests for all rules, and for the page of the rule that the parameter ``name`` names, or the ``problem`` with that."""
WATCHED = (
    *("**/*.{py,pyi,pyw,sh,bash,sbatch,slurm,yaml,yml,json,toml,env,ipynb}", "**/{Dockerfile,Containerfile}*"),
    # In some editors a star does not match names that begin with a dot.
    "**/.ldlm-lint.toml",
    *("**/.gitignore", "**/*.lock", "**/Pipfile", "**/setup.cfg"),
    *("**/*{requirements,constraints}*.{txt,in}", "**/requirements/*.{txt,in}", "**/{README,readme,INSTALL,install}*"),
)


def make(settings: Settings) -> Server:
    """A server that is ready to be started."""
    server = Server(settings)
    _register_life(server)
    _register_buffers(server)
    _register_notebooks(server)
    _register_questions(server)
    _register_rules(server)
    return server


def _register_life(server: Server) -> None:
    @server.feature(types.INITIALIZE)
    def initialize(params: types.InitializeParams) -> None:
        server.configure(params.initialization_options)

    @server.feature(types.INITIALIZED)
    async def initialized(_params: types.InitializedParams) -> None:
        server.reconfigured()
        await server.link.start()
        workspace = server.client_capabilities.workspace
        watching = workspace.did_change_watched_files if workspace else None
        if watching and watching.dynamic_registration:
            await server.client_register_capability_async(_watch_registration())

    @server.feature(types.SHUTDOWN)
    def shutdown(_params: None) -> None:
        server.finished = True
        server.stop()

    @server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)
    def configuration(params: types.DidChangeConfigurationParams) -> None:
        server.configure(_section(params.settings))
        server.reconfigured()

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def watched(_params: types.DidChangeWatchedFilesParams) -> None:
        server.touch_all(TYPING)

    @server.feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    def folders(_params: types.DidChangeWorkspaceFoldersParams) -> None:
        server.touch_all(TYPING)


def _section(settings: object) -> object:
    """Our section of an editor's settings; other content there is ignored."""
    if isinstance(settings, dict):
        return next((settings[name] for name in ("ldlm-lint", "ldlmLint", "ldlm_lint") if name in settings), None)
    return None


def _watch_registration() -> types.RegistrationParams:
    watchers = [types.FileSystemWatcher(glob_pattern=pattern) for pattern in WATCHED]
    options = types.DidChangeWatchedFilesRegistrationOptions(watchers)
    method = types.WORKSPACE_DID_CHANGE_WATCHED_FILES
    return types.RegistrationParams([types.Registration(id="ldlm-lint-files", method=method, register_options=options)])


def _register_buffers(server: Server) -> None:
    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: types.DidOpenTextDocumentParams) -> None:
        document = params.text_document
        server.changed(server.papers.open(document.uri, document.version, document.text), 0.0)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: types.DidChangeTextDocumentParams) -> None:
        paper = server.papers.get(params.text_document.uri)
        if paper is not None:
            paper.change(params.text_document.version, server.workspace.get_text_document(paper.uri).source)
        server.typed(paper)

    _register_ends(server, types.TEXT_DOCUMENT_DID_SAVE, types.TEXT_DOCUMENT_DID_CLOSE, attrgetter("text_document.uri"))


def _register_notebooks(server: Server) -> None:
    @server.feature(types.NOTEBOOK_DOCUMENT_DID_OPEN)
    def opened(params: types.DidOpenNotebookDocumentParams) -> None:
        notebook = params.notebook_document
        cells = notebooks.cells_of(notebook.cells, params.cell_text_documents)
        text = notebook_text(cells)
        server.changed(server.papers.open(notebook.uri, notebook.version, text, cells), 0.0)

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_CHANGE)
    def changed(params: types.DidChangeNotebookDocumentParams) -> None:
        paper = server.papers.get(params.notebook_document.uri)
        if paper is not None and params.change.cells is not None:
            for gone in notebooks.apply(paper, params.change.cells, server.encoding):
                server.publish(gone, [])
            paper.rewrite(params.notebook_document.version)
            server.typed(paper)

    _register_ends(server, types.NOTEBOOK_DOCUMENT_DID_SAVE, types.NOTEBOOK_DOCUMENT_DID_CLOSE, attrgetter("notebook_document.uri"))


def _register_ends(server: Server, save: str, close: str, uri_of: Callable[[Any], str]) -> None:
    @server.feature(save)
    def saved(params: Any) -> None:
        server.saved(server.papers.get(uri_of(params)))

    @server.feature(close)
    def closed(params: Any) -> None:
        server.closed(uri_of(params))


def _register_questions(server: Server) -> None:
    options = types.CodeActionOptions(code_action_kinds=[types.CodeActionKind.QuickFix, FIX_ALL], resolve_provider=True)

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION, options)
    async def code_action(params: types.CodeActionParams) -> list[types.CodeAction]:
        paper, cell = server.papers.of_document(params.text_document.uri)
        only = params.context.only
        is_for_file = only is not None and wanted(FIX_ALL, only)
        if paper is None or not await server.is_fresh(paper, before_saving=is_for_file):
            return []
        return await actions.offered(server, paper, cell, params.range, only)

    @server.feature(types.CODE_ACTION_RESOLVE)
    async def resolve(action: types.CodeAction) -> types.CodeAction:
        return await actions.resolved(server, action)

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def rest(params: types.HoverParams) -> types.Hover | None:
        paper, cell = server.papers.of_document(params.text_document.uri)
        if paper is None:
            return None
        return hover.at(paper, cell, params.position, server.encoding, _shows_markdown(server), server.awaits_saving(paper))


def _register_rules(server: Server) -> None:
    """Register what is asked about rules alone, which no method of the protocol is there for."""
    from ldlm_lint.server import pages

    @server.feature(RULES)
    def rules(_params: Any) -> list[dict[str, str]]:
        return pages.rule_list()

    @server.feature(RULE)
    def rule(params: Any) -> dict[str, str]:
        try:
            return pages.full_page(str(getattr(params, "name", "")))
        except SelectorError as error:
            return {"problem": str(error)}


def _shows_markdown(server: Server) -> bool:
    document = server.client_capabilities.text_document
    formats = document.hover.content_format if document and document.hover else None
    return formats is None or types.MarkupKind.Markdown in formats
