"""The cache as one run reads and updates it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ldlm_lint.cache import place
from ldlm_lint.cache.facts import Facts
from ldlm_lint.cache.index import Index
from ldlm_lint.cache.memo import Looks, Memo
from ldlm_lint.cache.stamp import key_of
from ldlm_lint.model import FileResult, Problem
from ldlm_lint.source import Kind

if TYPE_CHECKING:
    from ldlm_lint.config import Configured
    from ldlm_lint.discover import Discovery
    from ldlm_lint.ignores import Note

T = TypeVar("T")
TABLE = "table"
"""The fact that the linked program asks for."""
_KEPT = frozenset({"flow", TABLE, "skim", "guards", "head"})
"""The facts that cost more to make than to read; documents and scripts do not."""


class Session:
    """The cache as one run over a project sees it.

    ``folder`` is the directory of the cache, which `ldlm_lint.cache.place.prepare` has approved; ``root`` the root of
    the project. Nothing here raises for a cache that is damaged or cannot be written.
    """

    def __init__(self, folder: str, root: str, limit: int = place.LIMIT) -> None:
        self._folder = folder
        self._root = root
        self._limit = limit
        self.index = Index(os.path.join(folder, "index", f"{key_of(root)}.index"))
        self.looks = Looks(self.index)
        self._facts: dict[str, Facts] = {}
        self._discovered: dict[str, Discovery] = {}
        self._written = 0
        self.lasting = True
        """Whether another run over the same contents would say the same: not where time or memory ran out."""

    def note(self, kind: str, path: str) -> None:
        """Take down a look at the file system that this run depends on."""
        self.looks.note(kind, path)

    def discover(self, paths: Sequence[Path], configured: Configured, root: Path) -> Discovery:
        """The files below paths, as `ldlm_lint.discover.discover` finds them."""
        parts = [root.as_posix(), configured.key, *(path.as_posix() for path in paths)]
        key = key_of("discovery", *parts)

        def find(note: Note) -> Discovery:
            from ldlm_lint.discover import discover

            return discover(paths, configured, root, note=note)

        return self._found(key, find)

    def project_files(self, root: Path, configured: Configured) -> Discovery:
        """The files of the project at a root, as `ldlm_lint.discover.project_files` finds them."""
        key = key_of("project-files", os.path.expanduser("~"), root.as_posix(), configured.key)

        def find(note: Note) -> Discovery:
            from ldlm_lint.discover import project_files

            return project_files(root, configured, note)

        return self._found(key, find)

    def _found(self, key: str, find: Callable[[Note], Discovery]) -> Discovery:
        if key not in self._discovered:
            self._discovered[key] = self._find(key, find)
        return self._discovered[key]

    def _find(self, key: str, find: Callable[[Note], Discovery]) -> Discovery:
        memo = self.recall(key)
        if memo is not None:
            return _discovery(json.loads(memo))
        looks = Looks(self.index)
        found = find(looks.note)
        self.remember(key, json.dumps(_plain(found)).encode(), looks)
        self.looks.add(looks.inputs)
        return found

    def result(self, path: str, kind: Kind, config_key: str) -> FileResult | None:
        """The cached lint result of a file for its current content."""
        self.note("file", path)
        data = self._pack("results", config_key).get(path, self._content(path, kind))
        value = _decoded(data)
        return value if isinstance(value, FileResult) else None

    def content(self, path: str) -> str:
        """A key that identifies the content of a file."""
        self.note("file", path)
        return self.looks.inputs["file"][path]

    def keep(self, kind: Kind, config_key: str, result: FileResult) -> None:
        """Store the lint result of a file."""
        path = result.path
        self._learn(self._pack("results", config_key), path, self._content(path, kind), result._replace(table=None))
        if result.table is not None:
            from ldlm_lint.project.tables import remembered

            self._learn(self._pack(TABLE), path, self.looks.inputs["file"][path], remembered(result.table))

    def of(self, what: str, path: str, compute: Callable[[], T]) -> T:
        """A fact of a file of the project that depends on its content and place alone; computed only if it is not
        cached."""
        if what not in _KEPT:
            return compute()
        self.note("file", path)
        pack, content = self._pack(what), self.looks.inputs["file"][path]
        value = _decoded(pack.get(path, content))
        if value is None:
            value = compute()
            self._learn(pack, path, content, value)
        return value

    def recall(self, key: str) -> bytes | None:
        """A cached result that is still valid; this run then depends on its look-ups too."""
        memo = Memo.read(self._run(key))
        if memo is None or not self.index.holds(memo.inputs):
            return None
        self.looks.add(memo.inputs)
        return memo.value

    def remember(self, key: str, value: bytes, looks: Looks | None = None) -> None:
        """Store a result with its look-ups (all of this run), unless one of them has changed."""
        looks = looks or self.looks
        if self.index.holds(looks.inputs):
            self._written += Memo(self.index.path, looks.inputs, value).write(self._run(key))

    def close(self) -> None:
        """Save new facts for later runs."""
        self._written += self.index.save() + sum(pack.save() for pack in self._facts.values())
        if self._written:
            place.bound(self._folder, self._written, self._limit)
        self._written = 0

    def _run(self, key: str) -> str:
        return os.path.join(self._folder, "runs", f"{key}.run")

    def _pack(self, what: str, *parts: str) -> Facts:
        name = f"{key_of(self._root, what, *parts)}.facts"
        if name not in self._facts:
            self._facts[name] = Facts(os.path.join(self._folder, "facts", name))
        return self._facts[name]

    def _content(self, path: str, kind: Kind) -> str:
        return f"{kind.value} {self.looks.inputs['file'][path]}"

    def _learn(self, pack: Facts, path: str, content: str, value: object) -> None:
        import pickle

        from ldlm_lint.cache.values import encode

        try:
            pack.put(path, content, encode(value))
        except (pickle.PicklingError, TypeError, AttributeError):
            # Exists in this process only, so it is recomputed.
            return


def opened(root: Path) -> Session | None:
    """The cache for a project; None if it is unavailable."""
    folder = place.directory()
    return Session(folder, root.as_posix()) if folder and place.prepare(folder) else None


def _decoded(data: bytes | None) -> Any:
    if data is None:
        return None
    from ldlm_lint.cache.values import decode

    try:
        return decode(data)
    except ValueError:
        return None


def _plain(found: Discovery) -> Mapping[str, object]:
    return {
        "files": [(path.as_posix(), kind.value) for path, kind in found.files],
        "problems": found.problems,
        "excluded": found.excluded,
        "warnings": found.warnings,
    }


def _discovery(plain: Mapping[str, Any]) -> Discovery:
    from ldlm_lint.discover import Discovery

    kinds = {kind.value: kind for kind in Kind}
    return Discovery(
        tuple((Path(path), kinds[kind]) for path, kind in plain["files"]),
        tuple(Problem(*one) for one in plain["problems"]),
        plain["excluded"],
        tuple(Problem(*one) for one in plain["warnings"]),
    )
