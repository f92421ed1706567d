"""What a run asks of its cache, whichever it is: a `Session` of that on disk, or a `Memory`. Only annotations import this."""

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
    """What both know of files, and of whole answers."""

    lasting: bool

    def note(self, kind: str, path: str) -> None:
        """Take down a look at the file system that the run rests on."""

    def discover(self, paths: Sequence[Path], configured: Configured, root: Path) -> Discovery:
        """The files below paths, as `ldlm_lint.discover.discover` finds them."""

    def project_files(self, root: Path, configured: Configured) -> Discovery:
        """The files of the project at a root, as `ldlm_lint.discover.project_files` finds them."""

    def of(self, what: str, path: str, compute: Callable[[], T]) -> T:
        """A fact of a file that rests on its content and place alone; made only if it is not known."""

    def result(self, path: str, kind: Kind, config_key: str) -> FileResult | None:
        """What linting a file gave when it had the content that it has now."""

    def keep(self, kind: Kind, config_key: str, result: FileResult) -> None:
        """Learn what linting a file gave."""

    def recall(self, key: str) -> bytes | None:
        """An answer that still holds."""

    def remember(self, key: str, value: bytes, looks: Looks | None = None) -> None:
        """Keep an answer with the looks that it rests on."""

    def content(self, path: str) -> str:
        """What tells the content of a file from any other."""

    def close(self) -> None:
        """Leave to later runs what this one has learnt."""
