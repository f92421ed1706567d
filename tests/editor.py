"""An editor for tests: a language client that holds buffers, asks `ldlm-lint server` and applies what it is offered."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar

from lsprotocol import types
from pygls.lsp.client import LanguageClient

T = TypeVar("T")
TIMEOUT = 60.0
_CODECS = {"utf-8": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z|\Z")


class Editor:
    """One editor and its server; all methods wait for the answer.

    ``encodings`` are those of positions that it understands, ``plain`` leaves out what simple editors cannot do: to
    resolve an action later, to show a disabled one, versions of edits.
    """

    def __init__(self, *, encodings: Sequence[str] = ("utf-16",), plain: bool = False) -> None:
        self.loop = asyncio.new_event_loop()
        self.client = LanguageClient("editor-for-tests", "1")
        self.buffers: dict[str, tuple[int, str]] = {}
        self.published: dict[str, list[types.PublishDiagnosticsParams]] = {}
        self.shown: list[str] = []
        self.logged: list[str] = []
        self.registered: list[types.Registration] = []
        self.encoding = encodings[0]
        self._news = asyncio.Event()
        self._capabilities = _capabilities(encodings, plain)
        self._listen()

    def start(self, root: Path, options: object = None, *arguments: str) -> types.InitializeResult:
        """Start the server and greet it."""

        async def begin() -> types.InitializeResult:
            await self.client.start_io(sys.executable, "-m", "ldlm_lint", "server", *arguments, cwd=root)
            return await self.client.initialize_async(
                types.InitializeParams(
                    capabilities=self._capabilities,
                    root_uri=root.as_uri(),
                    workspace_folders=[types.WorkspaceFolder(root.as_uri(), root.name)],
                    initialization_options=options,
                )
            )

        result = self.wait(begin())
        self.client.initialized(types.InitializedParams())
        return result

    def wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """The result of something that takes a while."""
        return self.loop.run_until_complete(asyncio.wait_for(coroutine, TIMEOUT))

    def open(self, path: Path, text: str | None = None) -> list[types.Diagnostic]:
        """Open a file, or a buffer with a text that is not on disk; its diagnostics."""
        text = path.read_bytes().decode() if text is None else text
        self.buffers[path.as_uri()] = (1, text)
        item = types.TextDocumentItem(path.as_uri(), path.suffix, 1, text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        return self.diagnostics(path)

    def type(self, path: Path, text: str) -> int:
        """Change a buffer; its version."""
        uri = path.as_uri()
        version = self.buffers[uri][0] + 1
        self.buffers[uri] = (version, text)
        self.client.text_document_did_change(
            types.DidChangeTextDocumentParams(
                types.VersionedTextDocumentIdentifier(version, uri),
                [types.TextDocumentContentChangeWholeDocument(text)],
            )
        )
        return version

    def text(self, path: Path) -> str:
        """What a buffer holds."""
        return self.buffers[path.as_uri()][1]

    def diagnostics(self, path: Path) -> list[types.Diagnostic]:
        """What the server says about a buffer as it is now; a file is opened if it is not."""
        if path.as_uri() not in self.buffers:
            return self.open(path)
        return self.until(lambda: self._current(path))

    def until(self, found: Any) -> Any:
        """Wait for messages of the server until ``found()`` is not None, and return that."""

        async def waiting() -> Any:
            while (result := found()) is None:
                self._news.clear()
                await self._news.wait()
            return result

        return self.wait(waiting())

    def actions(self, path: Path, where: types.Range, only: Sequence[str] | None = None) -> list[types.CodeAction]:
        """What the server offers at a place."""
        params = types.CodeActionParams(
            types.TextDocumentIdentifier(path.as_uri()), where, types.CodeActionContext([], only=only)
        )
        return list(self.wait(self.client.text_document_code_action_async(params)) or [])

    def apply(self, action: types.CodeAction) -> None:
        """Do what an action says, as an editor does: ask for its edit, check versions, change the buffers."""
        if action.edit is None:
            action = self.wait(self.client.code_action_resolve_async(action))
        assert action.edit is not None, action
        for uri, version, edits in changes_of(action.edit):
            assert version in (None, self.buffers[uri][0])
            text = applied(self.buffers[uri][1], edits, self.encoding)
            self.type(Path(types_path(uri)), text)

    def hover(self, path: Path, line: int, character: int) -> str:
        """What is shown where the pointer rests; empty for nothing."""
        params = types.HoverParams(types.TextDocumentIdentifier(path.as_uri()), types.Position(line, character))
        found = self.wait(self.client.text_document_hover_async(params))
        return found.contents.value if found is not None else ""

    def ask(self, method: str, params: object = None) -> Any:
        """The answer to a request that is none of the protocol's."""

        async def asking() -> Any:
            return await self.client.protocol.send_request_async(method, params)

        return self.wait(asking())

    def leave(self) -> int:
        """Shut the server down; its exit code."""

        async def end() -> int:
            await self.client.shutdown_async(None)
            self.client.exit(None)
            return await self.client._server.wait()

        code = self.wait(end())
        self.wait(self.client.stop())
        self.loop.close()
        return code

    def _current(self, path: Path) -> list[types.Diagnostic] | None:
        version, _ = self.buffers[path.as_uri()]
        found = [one for one in self.published.get(path.as_uri(), ()) if one.version == version]
        return list(found[-1].diagnostics) if found else None

    def _listen(self) -> None:
        @self.client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def publish(params: types.PublishDiagnosticsParams) -> None:
            self.published.setdefault(params.uri, []).append(params)
            self._news.set()

        @self.client.feature(types.WINDOW_SHOW_MESSAGE)
        def show(params: types.ShowMessageParams) -> None:
            self.shown.append(params.message)
            self._news.set()

        @self.client.feature(types.WINDOW_LOG_MESSAGE)
        def log(params: types.LogMessageParams) -> None:
            self.logged.append(params.message)
            self._news.set()

        @self.client.feature(types.CLIENT_REGISTER_CAPABILITY)
        def register(params: types.RegistrationParams) -> None:
            self.registered += params.registrations
            self._news.set()


def applied(text: str, edits: Sequence[types.TextEdit], encoding: str) -> str:
    """A text after edits, whose ranges are all about the text before."""
    spans = [(_index(text, one.range.start, encoding), _index(text, one.range.end, encoding), one) for one in edits]
    for start, end, edit in sorted(spans, key=lambda one: one[:2], reverse=True):
        text = text[:start] + edit.new_text + text[end:]
    return text


def _index(text: str, position: types.Position, encoding: str) -> int:
    codec = _CODECS[encoding]
    lines = _LINE.findall(text)
    before = "".join(lines[: position.line])
    line = (lines[position.line] if position.line < len(lines) else "").rstrip("\r\n").encode(codec)
    size = len("a".encode(codec))
    assert position.character * size <= len(line), position
    return len(before) + len(line[: position.character * size].decode(codec))


def changes_of(edit: types.WorkspaceEdit) -> list[tuple[str, int | None, Sequence[types.TextEdit]]]:
    if edit.document_changes is None:
        return [(uri, None, edits) for uri, edits in (edit.changes or {}).items()]
    return [(one.text_document.uri, one.text_document.version, one.edits) for one in edit.document_changes]


def types_path(uri: str) -> str:
    """The path of a file's URI."""
    from pygls.uris import to_fs_path

    return str(to_fs_path(uri))


def _capabilities(encodings: Sequence[str], plain: bool) -> types.ClientCapabilities:
    general = types.GeneralClientCapabilities(position_encodings=[types.PositionEncodingKind(one) for one in encodings])
    if plain:
        return types.ClientCapabilities(general=general)
    return types.ClientCapabilities(
        general=general,
        workspace=types.WorkspaceClientCapabilities(
            workspace_edit=types.WorkspaceEditClientCapabilities(
                document_changes=True,
                change_annotation_support=types.ChangeAnnotationsSupportOptions(),
            ),
            did_change_watched_files=types.DidChangeWatchedFilesClientCapabilities(dynamic_registration=True),
        ),
        text_document=types.TextDocumentClientCapabilities(
            publish_diagnostics=types.PublishDiagnosticsClientCapabilities(related_information=True),
            hover=types.HoverClientCapabilities(content_format=[types.MarkupKind.Markdown]),
            code_action=types.CodeActionClientCapabilities(
                disabled_support=True,
                resolve_support=types.ClientCodeActionResolveOptions(properties=["edit"]),
            ),
        ),
    )
