"""Scripts that source scripts: ``. "$(dirname "$0")/env.sh"`` runs another file of the project in the same shell.

Variables of a sourced file are visible after the place that sources it; conversely, its exports apply to every script
that sources it. Only files of the project count, recursion is not followed, and of two files that set a variable the
later one wins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from ldlm_lint.model import Span
from ldlm_lint.project.index import Project
from ldlm_lint.project.launch_paths import Paths, is_here, leading_variable, own_folder
from ldlm_lint.rules.settings import Value
from ldlm_lint.shell import provenance
from ldlm_lint.shell.launch_code import Code, codes
from ldlm_lint.shell.reaching import Change
from ldlm_lint.shell.scanner import scan
from ldlm_lint.shell.script import Script, Word
from ldlm_lint.source import Kind

_DEPTH = 5


class Sourced(NamedTuple):
    """A file of the project that a script runs in its own shell, and the command that does it."""

    path: str
    span: Span


@dataclass
class Sourcing:
    """The scripts of a project as they run together; everything is read once."""

    project: Project
    _sourced: dict[str, tuple[Sourced, ...]] = field(default_factory=dict)
    _codes: dict[str, tuple[Code, ...]] = field(default_factory=dict)
    _running: list[str] = field(default_factory=list)

    @cached_property
    def _paths(self) -> Paths:
        return Paths(self.project)

    def sourced_by(self, path: str) -> tuple[Sourced, ...]:
        """The files that a script sources itself, in order."""
        if path not in self._sourced:
            script = self.project.script(path)
            words = script.sources if script is not None else ()
            found = ((self._file(path, word), word.span) for word in words)
            self._sourced[path] = tuple(Sourced(one, span) for one, span in found if one is not None and one != path)
        return self._sourced[path]

    def around(self, path: str) -> set[str]:
        """The other scripts that may share a shell with this one: the sourced and the sourcing ones, at any depth."""
        return (self._closure(path, self._targets) | self._closure(path, self._sourcers)) - {path}

    def sourcers(self, path: str) -> tuple[str, ...]:
        """The scripts that source a file, directly or through others, in order."""
        return tuple(sorted(self._closure(path, self._sourcers) - {path}))

    def codes(self, path: str) -> tuple[Code, ...]:
        """The code of a script with the variables of sourced files; empty if it cannot be read."""
        if path not in self._codes:
            source = self.project.source(path) if self.project.others.get(path) is Kind.SHELL else None
            self._codes[path] = codes(source, self.script(path)) if source is not None else ()
        return self._codes[path]

    def script(self, path: str) -> Script:
        """A script with the variables of sourced files."""
        source = self.project.source(path) if self.project.others.get(path) is Kind.SHELL else None
        if source is None:
            return Script()
        if not self.sourced_by(path):
            return self.project.script(path) or Script()
        return scan(source, lambda name, place: self._visible(path, name, place))

    def _visible(self, path: str, name: str, place: int) -> tuple[Value, ...] | None:
        """The value of a variable from files sourced before a place."""
        if path in self._running or len(self._running) > _DEPTH:
            return None
        self._running.append(path)
        try:
            for one in reversed(self.sourced_by(path)):
                if one.span.end > place:
                    continue
                found = self._left(one.path, name)
                if found is not None:
                    return found
        finally:
            self._running.pop()
        return None

    def _left(self, path: str, name: str) -> tuple[Value, ...] | None:
        script, data = self.project.script(path), self.project.data(path)
        known = script.variables.at(name, len(data)) if script is not None else None
        if known:
            return tuple(provenance.through(value, None) for value in known)
        return self._visible(path, name, len(data))

    def reads(self, path: str, name: str) -> bool:
        """Whether a script around this one expands a variable that is set here."""
        scripts = (self.project.script(one) for one in self.around(path))
        return any(one.name == name for script in scripts if script is not None for one in script.expansions)

    def takes_back(self, path: str, home: str, name: str) -> bool:
        """Whether a script unsets a sourced file's variables before any launch."""
        script, data = self.project.script(path), self.project.data(path)
        behind = [one.span.end for one in self.sourced_by(path) if home in self.sourced_at_all(one.path)]
        if script is None or name not in script.unset or not behind:
            return False
        launched = [one.span.start for one in script.launches if one.span.start >= max(behind)]
        steps = script.variables.steps_at(name, min(launched, default=len(data)))
        return bool(steps) and all(one.change is Change.UNSET and one.start >= max(behind) for one in steps)

    def unknown(self, path: str) -> Iterator[Word]:
        """The files that a script sources, as written, that are not scripts of the project."""
        script = self.project.script(path)
        words = script.sources if script is not None else ()
        return (word for word in words if self._file(path, word) is None)

    def sourced_at_all(self, path: str) -> frozenset[str]:
        """The scripts that a script runs in its own shell, directly or through others, itself among them."""
        return frozenset(self._closure(path, self._targets))

    def _targets(self, path: str) -> Iterator[str]:
        return (one.path for one in self.sourced_by(path))

    def _sourcers(self, path: str) -> Iterator[str]:
        return iter(self._by_target.get(path, ()))

    @cached_property
    def _by_target(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for path in self.project.of_kind(Kind.SHELL):
            data = self.project.data(path)
            if b"source" not in data and b". " not in data:
                continue
            for one in self.sourced_by(path):
                found.setdefault(one.path, []).append(path)
        return found

    @staticmethod
    def _closure(path: str, step: Callable[[str], Iterator[str]]) -> set[str]:
        seen, waiting = {path}, [path]
        while waiting:
            for one in step(waiting.pop()):
                if one not in seen:
                    seen.add(one)
                    waiting.append(one)
        return seen

    # Which file

    def _file(self, path: str, word: Word) -> str | None:
        """The shell script or ``.env`` file of the project named by a word."""
        found = self._find(path, word.text)
        return found if found is not None and self.project.others.get(found) in (Kind.SHELL, Kind.DOTENV) else None

    def _find(self, path: str, text: str) -> str | None:
        folders = self._paths.upwards(path)
        own = own_folder(text, path, self.project.root)
        if own is not None and text.endswith((".sh", ".bash", ".env")):
            behind = text.rpartition(")")[2] if ")" in text else text.rpartition("}")[2]
            return own if own in self._paths.files else self._paths.find(behind.strip("/\"'"), [own])
        leading = leading_variable(text)
        if leading is None:
            return self._paths.find(text, folders)
        folder = self._folder(path, leading[0], 0)
        return self._paths.find(leading[1].lstrip("/"), [folder] if folder else folders)

    def _folder(self, path: str, name: str, depth: int) -> str | None:
        """The folder in a variable: ``DIR="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"``, ``ROOT="$DIR/.."``."""
        script, source = self.project.script(path), self.project.source(path)
        if script is None or source is None or depth > _DEPTH:
            return None
        assigned = [one for one in script.assignments if one.name == name]
        found = {self._folder_in(path, source.slice(one.value_span), depth) for one in assigned}
        return found.pop() if len(found) == 1 else None

    def _folder_in(self, path: str, raw: str, depth: int) -> str | None:
        own = own_folder(raw, path, self.project.root)
        if own is not None or is_here(raw):
            return own
        leading = leading_variable(raw.strip("\"'"))
        folder = self._folder(path, leading[0], depth + 1) if leading else None
        if folder is None or leading is None:
            return None
        below = self._paths.below([folder], leading[1].lstrip("/") or ".")
        return below[0] if below else None
