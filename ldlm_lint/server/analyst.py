"""The state and functions of the linting process: the open buffers, their reports, their fixes."""

from __future__ import annotations

import io
import tokenize
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ldlm_lint import baseline
from ldlm_lint.add_ignores import add_ignores
from ldlm_lint.buffers import fix_buffer, lint_buffer
from ldlm_lint.cache.memory import Memory
from ldlm_lint.config import project_root
from ldlm_lint.configurations import Configurations
from ldlm_lint.discover import TOOL_DIRECTORIES, kind_of_name
from ldlm_lint.gate import Gate
from ldlm_lint.linting import source_of
from ldlm_lint.model import Report
from ldlm_lint.rules import by_symbol
from ldlm_lint.server.diagnosis import diagnosis, findings_of
from ldlm_lint.server.edits import FileEdit, edits_between
from ldlm_lint.server.settings import Settings
from ldlm_lint.source import MAX_BYTES, Kind, Source, UnreadableError

_FOREIGN = frozenset((*TOOL_DIRECTORIES, "dist-packages"))


@dataclass
class Analyst:
    """The open buffers by their paths (absolute, forward slashes), and the last report about each.

    ``encoding`` is that of the editor's positions. Its methods return values in the protocol's shape.
    """

    encoding: str = "utf-16"
    settings: Settings = field(default_factory=Settings)
    buffers: dict[str, bytes] = field(default_factory=dict)
    reports: dict[str, Report] = field(default_factory=dict)
    memory: Memory = field(default_factory=Memory)

    def put(self, path: str, text: str) -> None:
        """Take the text of a buffer that was opened or has changed."""
        self.buffers[path] = encoded(text, path)
        self.reports.pop(path, None)

    def drop(self, path: str) -> None:
        """Forget a buffer that was closed."""
        self.buffers.pop(path, None)
        self.reports.pop(path, None)

    def lint(self, path: str) -> dict[str, Any]:
        """The diagnosis of a buffer; raises ConfigError or SelectorError where its configuration cannot be used."""
        if path not in self.buffers or is_foreign(path):
            return {"diagnostics": [], "fixes": [], "problems": []}
        if len(self.buffers[path]) > MAX_BYTES:
            return {"diagnostics": [], "fixes": [], "problems": [f"larger than {MAX_BYTES:,} bytes, not checked"]}
        configured, gate = self._configured(path)
        base, data = project_root(Path(path)), self.buffers[path]
        self.memory.begin()
        report = lint_buffer(path, data, configured, base, gate, self._others(path), self.memory)
        self.reports[path] = report
        return diagnosis(report, path, by_symbol, self.encoding, self._source)

    def ignore(self, path: str, finding: int) -> dict[str, Any]:
        """The edits that silence a finding of the last diagnosis, or the ``reason`` why there are none."""
        report = self.reports.get(path)
        found = [] if report is None else findings_of(report, path)
        if report is None or finding >= len(found):
            return {"edits": [], "reason": "the buffer has changed"}
        ignored = add_ignores([found[finding]], report.sources, by_symbol)
        if path not in ignored.contents:
            return {"edits": [], "reason": next((one.message for one in ignored.problems), "it is already silenced")}
        return {"edits": self._edits(path, ignored.contents[path]), "reason": ""}

    def fix_all(self, path: str) -> dict[str, Any]:
        """The edits of all safe fixes of a buffer."""
        if path not in self.buffers or is_foreign(path):
            return {"edits": [], "reason": ""}
        configured, gate = self._configured(path)
        base, data, others = project_root(Path(path)), self.buffers[path], self._others(path)
        self.memory.begin()
        after, outcome = fix_buffer(path, data, configured, base, gate=gate, others=others, session=self.memory)
        reason = "; ".join(note.message for note in outcome.notes)
        return {"edits": self._edits(path, after) if after != data else [], "reason": reason}

    def _configured(self, path: str) -> tuple[Configurations, Gate]:
        configured = self.settings.load(Path(path))
        config = configured.run
        if config.baseline:
            return configured, Gate(baseline.read(Path(config.root, config.baseline)))
        return configured, Gate({} if self.settings.isolated else baseline.nearest(Path(config.root)))

    def _others(self, path: str) -> dict[str, bytes]:
        return {other: data for other, data in self.buffers.items() if other != path}

    def _edits(self, path: str, after: bytes) -> list[FileEdit]:
        before = self._source(path)
        assert before is not None
        return edits_between(before, Source.from_bytes(path, after, before.kind), self.encoding)

    def _source(self, path: str) -> Source | None:
        """The text of a file from the editor, else from disk."""
        report = self.reports.get(path)
        known = report.sources.get(path) if report is not None else None
        if isinstance(known, Source) and known.data == self.buffers.get(path, known.data):
            return known
        try:
            return source_of(path, kind_of_name(path) or Kind.SHELL, self.buffers)
        except UnreadableError:
            return None

    def configure(self, settings: Settings, encoding: str) -> None:
        """Take new settings; every report is out of date."""
        self.settings, self.encoding = settings, encoding
        self.reports.clear()


def encoded(text: str, path: str) -> bytes:
    """The bytes that an editor would save: in the encoding that Python source declares, else UTF-8.

    A character outside the encoding becomes a question mark of the same width.
    """
    data = text.encode("utf-8", errors="replace")
    if kind_of_name(path) is not Kind.PYTHON:
        return data
    try:
        declared = tokenize.detect_encoding(io.BytesIO(data).readline)[0]
        return data if declared in ("utf-8", "utf-8-sig") else text.encode(declared, errors="replace")
    except (SyntaxError, LookupError, UnicodeError):
        # The lint reports the invalid encoding.
        return data


def is_foreign(path: str) -> bool:
    """Whether a file belongs to an environment or a tool: a library that the user looks into, not the project."""
    place = Path(path)
    root = project_root(place)
    inside = place.relative_to(root).parts
    return not _FOREIGN.isdisjoint(inside) or not {"site-packages", "dist-packages"}.isdisjoint(place.parts)
