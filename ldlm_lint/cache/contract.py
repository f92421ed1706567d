"""The interface of a run's cache: a `Session` of the cache on disk, or a `Memory`. Only annotations import this."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from ldlm_lint.cache.memo import Looks
from ldlm_lint.config import Configured
from ldlm_lint.discover import Discovery
from ldlm_lint.model import FileResult
from ldlm_lint.source import Kind

T = TypeVar("T")


class Cache(Protocol):
    """Cached facts of files, and whole results."""

    lasting: bool

    def note(self, kind: str, path: str) -> None:
        """Take down a look at the file system that the run depends on."""

    def discover(self, paths: Sequence[Path], configured: Configured, root: Path) -> Discovery:
        """The files below paths, as `ldlm_lint.discover.discover` finds them."""

    def project_files(self, root: Path, configured: Configured) -> Discovery:
        """The files of the project at a root, as `ldlm_lint.discover.project_files` finds them."""

    def of(self, what: str, path: str, compute: Callable[[], T]) -> T:
        """A fact of a file that depends on its content and place alone; computed only if it is not cached."""

    def result(self, path: str, kind: Kind, config_key: str) -> FileResult | None:
        """The cached lint result of a file for its current content."""

    def keep(self, kind: Kind, config_key: str, result: FileResult) -> None:
        """Store the lint result of a file."""

    def recall(self, key: str) -> bytes | None:
        """A cached result that is still valid."""

    def remember(self, key: str, value: bytes, looks: Looks | None = None) -> None:
        """Store a result with the look-ups that it depends on."""

    def content(self, path: str) -> str:
        """A key that identifies the content of a file."""

    def close(self) -> None:
        """Save new facts for later runs."""
