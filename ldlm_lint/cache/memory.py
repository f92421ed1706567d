"""What a process remembers of the files on disk between two lints: a session of the cache, in memory.

It has the methods that `ldlm_lint.cache.contract.Cache` names. What an entry rests on is looked at anew for every lint, so that
nobody has to tell of changes on disk; a look at a file that was left alone costs a call of the system.
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
    """Facts of files by their contents, and discoveries by what was looked at for them."""

    def __init__(self) -> None:
        self._index = Index()
        self._facts: dict[tuple[str, str], tuple[str, Any]] = {}
        self._discovered: dict[tuple[object, ...], tuple[Inputs, Discovery]] = {}
        self._seen: dict[str, str] = {}
        self.lasting = True
        """As that of a session; nobody asks, since whole answers are not kept."""

    def begin(self) -> None:
        """Look at every file anew from now on."""
        self._seen.clear()

    def note(self, kind: str, path: str) -> None:
        """What a run rests on matters to nobody here: it is looked at again for the next one."""

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
        """A fact of a file that rests on its content and place alone; made only if it is not known."""
        content = self.content(path)
        known = self._facts.get((what, path))
        if known is None or known[0] != content:
            known = (content, compute())
            self._facts[what, path] = known
        return known[1]

    def result(self, path: str, kind: Kind, config_key: str) -> FileResult | None:
        """What linting a file gave when it had the content that it has now."""
        known = self._facts.get((f"result {kind.value} {config_key}", path))
        return known[1] if known is not None and known[0] == self.content(path) else None

    def keep(self, kind: Kind, config_key: str, result: FileResult) -> None:
        """Learn what linting a file gave."""
        content = self.content(result.path)
        self._facts[f"result {kind.value} {config_key}", result.path] = (content, result._replace(table=None))
        if result.table is not None:
            from ldlm_lint.project.tables import remembered

            self._facts["table", result.path] = (content, remembered(result.table))

    def recall(self, key: str) -> bytes | None:
        """Whole answers are not kept: every lint is about a buffer that has just changed."""
        return None

    def remember(self, key: str, value: bytes, looks: Looks | None = None) -> None:
        """Keep nothing, as `recall` says."""

    def close(self) -> None:
        """Nothing is written anywhere."""

    def content(self, path: str) -> str:
        """What tells the content of a file from any other."""
        if path not in self._seen:
            self._seen[path] = self._index.look("file", path)
        return self._seen[path]
