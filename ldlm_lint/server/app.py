"""The server: open buffers, their diagnoses, and the messages to the editor.

It does not lint itself, and no pending answer waits for a lint; see `ldlm_lint.server.link`. Messages of the editor
arrive through `ldlm_lint.server.features`.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from ldlm_lint import __version__
from ldlm_lint.server.convert import diagnostic, fault
from ldlm_lint.server.link import DiedError, Link, LinkError, Message, UsageAnswer
from ldlm_lint.server.notebooks import SYNC
from ldlm_lint.server.papers import NOTHING, Paper, Papers
from ldlm_lint.server.schedule import Schedule
from ldlm_lint.server.settings import ON_SAVE, Settings, merged

# Seconds without a keystroke before a buffer is linted, and before the other open ones are, which it may affect.
TYPING, SPREADING = 0.15, 1.0
# Seconds that an editor's question about actions waits for the lint of the last edit.
_PATIENCE = 5.0

logger = logging.getLogger(__name__)


class Server(LanguageServer):
    """A language server about training repositories."""

    def __init__(self, settings: Settings) -> None:
        # Whole texts: pygls splits lines at form feeds and other signs that the protocol does not split at, so that a
        # buffer which is patched change by change would sooner or later differ from the editor's.
        super().__init__(
            "ldlm-lint",
            __version__,
            text_document_sync_kind=types.TextDocumentSyncKind.Full,
            notebook_document_sync=SYNC,
        )
        self.settings = settings
        self.complaints: list[str] = []
        self.papers = Papers()
        self.link = Link(self._greeting)
        self.schedule = Schedule(self._lint)
        self.finished = False
        self._spreading: set[str] = set()

    @property
    def encoding(self) -> str:
        """The encoding of positions that was agreed on."""
        return str(getattr(self.workspace.position_encoding, "value", self.workspace.position_encoding) or "utf-16")

    def report_server_error(self, error: Exception, source: Any) -> None:
        """A defect of ours goes into the log; it does not interrupt the user."""
        logger.error("%s", error, exc_info=error)
        self.log(f"internal error: {error}", types.MessageType.Error)

    def log(self, message: str, kind: types.MessageType = types.MessageType.Info) -> None:
        """Write into the editor's log."""
        self.window_log_message(types.LogMessageParams(kind, message))

    def show(self, message: str) -> None:
        """Show a message to the user."""
        self.window_show_message(types.ShowMessageParams(types.MessageType.Error, message))

    def configure(self, given: object) -> None:
        """Take settings from the editor, and keep errors in them until messages may be sent."""
        self.settings, complaints = merged(self.settings, given)
        self.complaints += complaints

    def reconfigured(self) -> None:
        """Lint everything again with the current settings."""
        for complaint in self.complaints:
            self.show(complaint)
        self.complaints.clear()
        self.link.tell(**self._configuration())
        self.touch_all(0.0)

    def touch_all(self, delay: float) -> None:
        """Lint all open buffers, because something outside of them has changed."""
        for paper in self.papers:
            self._touch_later(paper, delay)

    def changed(self, paper: Paper | None, delay: float) -> None:
        """Lint a buffer because of its text, and the others a little later; no effect if it is not open."""
        if paper is not None:
            self._spreading.add(paper.uri)
            self.schedule.touch(paper.uri, delay)

    def typed(self, paper: Paper | None) -> None:
        """Lint a buffer once the typing pauses, unless findings are wanted on saving only."""
        if paper is not None and not self.awaits_saving(paper):
            self.changed(paper, TYPING)

    def saved(self, paper: Paper | None) -> None:
        """Lint a buffer that was saved."""
        if paper is not None:
            paper.unsaved = False
            self.changed(paper, 0.0)

    def awaits_saving(self, paper: Paper) -> bool:
        """Whether a buffer keeps its old findings until it is saved."""
        return self.settings.run == ON_SAVE and paper.unsaved

    async def is_fresh(self, paper: Paper, *, before_saving: bool = False) -> bool:
        """Whether the diagnosis of a buffer is about its text as it is, once it has been waited for.

        A buffer that awaits its saving is linted only with ``before_saving``, for an editor that is about to save it.
        """
        if paper.seen != paper.version:
            if self.awaits_saving(paper) and not before_saving:
                return False
            self.schedule.touch(paper.uri, 0.0)
            try:
                await asyncio.wait_for(self.schedule.settled(paper.uri), _PATIENCE)
            except asyncio.TimeoutError:
                return False
        return paper.seen == paper.version

    async def ask(self, **message: object) -> Any:
        """The answer of the linting process about the current buffers; if the process dies, a new one is asked."""
        try:
            return await self._asked(**message)
        except DiedError:
            return await self._asked(**message)

    async def _asked(self, **message: object) -> Any:
        await self.link.start()
        for paper in self.papers:
            if paper.sent != paper.version:
                self._send(paper)
        return await self.link.ask(**message)

    def _touch_later(self, paper: Paper, delay: float) -> None:
        if not self.awaits_saving(paper):
            self.schedule.touch(paper.uri, delay, later=True)

    def stop(self) -> None:
        """Stop everything that runs besides the protocol."""
        self.schedule.close()
        self.link.close()

    def _greeting(self) -> list[Message]:
        for paper in self.papers:
            paper.sent = None
        return [self._configuration()]

    def _configuration(self) -> Message:
        return {"do": "configure", "settings": self.settings.plain, "encoding": self.encoding}

    def _send(self, paper: Paper) -> None:
        self.link.tell(do="put", path=paper.path, text=paper.text)
        paper.sent = paper.version

    async def _lint(self, uri: str) -> None:
        """Lint a buffer and show what was found; errors go to the log, and the server keeps running."""
        try:
            await self._linted(uri)
        except Exception as error:
            self.report_server_error(error, type(error))

    async def _linted(self, uri: str) -> None:
        paper = self.papers.get(uri)
        if paper is None:
            return
        version = paper.version
        faults: tuple[Message, ...] = ()
        try:
            found, trouble = await self.ask(do="lint", path=paper.path), ""
        except UsageAnswer as answer:
            found, trouble, faults = NOTHING, str(answer), answer.faults
        except LinkError as error:
            logger.error("%s: %s", paper.path, error)
            self.log(f"{paper.path} could not be linted: {error}", types.MessageType.Error)
            found, trouble = NOTHING, ""
        if self.papers.get(uri) is paper and paper.version == version:
            self._publish(paper, found, trouble)
            self._blame(paper, faults)
        if uri in self._spreading:
            self._spreading.discard(uri)
            for other in self.papers:
                if other is not paper:
                    self._touch_later(other, SPREADING)

    def _publish(self, paper: Paper, found: Any, trouble: str) -> None:
        if trouble and not any(one.trouble == trouble for one in self.papers):
            self.show(trouble)
        for problem in found["problems"]:
            self.log(f"{paper.path}: {problem}", types.MessageType.Warning)
        paper.trouble, paper.diagnosis, paper.seen = trouble, found, paper.version
        self._show_findings(paper)

    def _show_findings(self, paper: Paper) -> None:
        capability = self.client_capabilities.text_document
        shown = capability.publish_diagnostics if capability else None
        related = bool(shown and shown.related_information)
        for cell, uri, version in paper.documents():
            here = [one for one in paper.diagnosis["diagnostics"] if one["cell"] == cell]
            faults = self._faults_in(paper.path) if cell is None else []
            self.publish(uri, [*(diagnostic(one, self.papers.uri_of, related) for one in here), *faults], version)

    def _blame(self, paper: Paper, faults: tuple[Message, ...]) -> None:
        """Show errors of a buffer's configuration in the configuration file, and clear them when they are fixed."""
        files = {one["path"] for one in (*paper.faults, *faults)} if paper.faults != faults else set()
        paper.faults = faults
        for path in sorted(files):
            open_one = next((one for one in self.papers if one.path == path), None)
            if open_one is None:
                self.publish(self.papers.uri_of(path), self._faults_in(path))
            else:
                self._show_findings(open_one)

    def _faults_in(self, path: str) -> list[types.Diagnostic]:
        """The errors of a configuration file that applies to an open buffer."""
        found = dict.fromkeys((one["line"], one["message"]) for paper in self.papers for one in paper.faults if one["path"] == path)
        return [fault(line, message) for line, message in found]

    def publish(self, uri: str, found: list[types.Diagnostic], version: int | None = None) -> None:
        """Show diagnostics of a document instead of those before."""
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, found, version))

    def closed(self, uri: str) -> None:
        """Forget a buffer, and its diagnostics."""
        paper = self.papers.close(uri)
        if paper is not None:
            self.schedule.forget(uri)
            self.link.tell(do="drop", path=paper.path)
            for _, document, _ in paper.documents():
                self.publish(document, [])
            self._blame(paper, ())
            self.touch_all(SPREADING)
