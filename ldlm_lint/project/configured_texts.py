"""The values of a setting in the configuration files of a project, as texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ldlm_lint.source import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ldlm_lint.configs.document import Entry
    from ldlm_lint.project.index import Project

_DOCUMENTS = (Kind.YAML, Kind.JSON, Kind.TOML)
_MOST = 200
"""Texts above which a key is no choice of a few."""


class ConfiguredTexts:
    """Answers by the last keys of a setting; each file is read once for each key that it holds."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._known: dict[tuple[str, ...], frozenset[str]] = {}

    def __call__(self, setting: tuple[str, ...]) -> frozenset[str]:
        """The texts of a setting; if none is below both of its keys, those of the last one."""
        if setting not in self._known:
            entries = list(self._entries(setting[-1]))
            below = [one for one in entries if [key for key in one.path if isinstance(key, str)][-2:] == list(setting)]
            texts = frozenset(one.value for one in below or entries if isinstance(one.value, str))
            self._known[setting] = texts if len(texts) <= _MOST else frozenset()
        return self._known[setting]

    def _entries(self, name: str) -> Iterator[Entry]:
        word = name.encode()
        for path in self._project.of_kind(*_DOCUMENTS):
            document = self._project.document(path) if word in self._project.data(path) else None
            if document is not None:
                yield from document.named(name)
