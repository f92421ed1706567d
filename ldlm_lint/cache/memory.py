"""An in-memory cache of facts about files between two lints of one process.

It has the methods that `ldlm_lint.cache.contract.Cache` names. What an entry depends on is checked again for every
lint, so that no change event is needed; checking an unchanged file costs one system call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ldlm_lint.cache.index import Index, Inputs
from ldlm_lint.cache.memo import Looks
from ldlm_lint.discover import Discovery, discover, project_files
from ldlm_lint.ignores import Note

if TYPE_CHECKING:
    from ldlm_lint.config import Configured
    from ldlm_lint.model import FileResult
    from ldlm_lint.source import Kind

T = TypeVar("T")


class Memory:
    """Facts of files by their contents, and discoveries by their look-ups."""

    def __init__(self) -> None:
        self._index = Index()
        self._facts: dict[tuple[str, str], tuple[str, Any]] = {}
        self._discovered: dict[tuple[object, ...], tuple[Inputs, Discovery]] = {}
        self._seen: dict[str, str] = {}
        self.lasting = True
        """Like that of a session; not used, because whole answers are not kept."""

    def begin(self) -> None:
        """Look at every file again from now on."""
        self._seen.clear()

    def note(self, kind: str, path: str) -> None:
        """Ignore the look-ups of a run: they are repeated for the next one."""

    def discover(self, paths: Sequence[Path], configured: Configured, root: Path) -> Discovery:
        """The files below paths, as `ldlm_lint.discover.discover` finds them."""
        return self._found((tuple(paths), configured.key, root), lambda note: discover(paths, configured, root, note=note))

    def project_files(self, root: Path, configured: Configured) -> Discovery:
        """The files of the project at a root, as `ldlm_lint.discover.project_files` finds them."""
        return self._found((root, configured.key), lambda note: project_files(root, configured, note))

    def _found(self, key: tuple[object, ...], find: Callable[[Note], Discovery]) -> Discovery:
        known = self._discovered.get(key)
        if known is not None and self._index.holds(known[0]):
            return known[1]
        looks = Looks(self._index)
        found = find(looks.note)
        self._discovered[key] = (looks.inputs, found)
        return found

    def of(self, what: str, path: str, compute: Callable[[], T]) -> T:
        """A fact of a file that depends on its content and place alone; computed only if it is not cached."""
        content = self.content(path)
        known = self._facts.get((what, path))
        if known is None or known[0] != content:
            known = (content, compute())
            self._facts[what, path] = known
        return known[1]

    def result(self, path: str, kind: Kind, config_key: str) -> FileResult | None:
        """The cached lint result of a file for its current content."""
        known = self._facts.get((f"result {kind.value} {config_key}", path))
        return known[1] if known is not None and known[0] == self.content(path) else None

    def keep(self, kind: Kind, config_key: str, result: FileResult) -> None:
        """Store the lint result of a file."""
        content = self.content(result.path)
        self._facts[f"result {kind.value} {config_key}", result.path] = (content, result._replace(table=None))
        if result.table is not None:
            from ldlm_lint.project.tables import remembered

            self._facts["table", result.path] = (content, remembered(result.table))

    def recall(self, key: str) -> bytes | None:
        """Whole answers are not kept: every lint is about a buffer that has just changed."""
        return None

    def remember(self, key: str, value: bytes, looks: Looks | None = None) -> None:
        """Keep nothing, see `recall`."""

    def close(self) -> None:
        """Nothing is written anywhere."""

    def content(self, path: str) -> str:
        """A key that identifies the content of a file."""
        if path not in self._seen:
            self._seen[path] = self._index.look("file", path)
        return self._seen[path]
