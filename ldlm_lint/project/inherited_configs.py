"""The data files of configurations (YAML, JSON, TOML) that are based on others: what final ones are made of, and parts
that no configuration takes."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from functools import cached_property

from ldlm_lint.configs.inheritance import BASE_KEYS
from ldlm_lint.project.frameworks import holds_key
from ldlm_lint.project.index import Project
from ldlm_lint.project.launches import Launches
from ldlm_lint.source import Kind

_KINDS = (Kind.YAML, Kind.JSON, Kind.TOML)
_SUFFIXES = (".yaml", ".yml", ".json", ".toml")
_NAMES_BASE = re.compile(rb"(?m)^[ \t{]*[\"']?(?:%s)[\"']?[ \t]*[:=]" % b"|".join(sorted(one.encode() for one in BASE_KEYS)))
_SEVERAL = 2
"""Launched files in a folder from which on the scripts are taken to launch all that run."""


class InheritedConfigs:
    """The inheritance between the configuration files of a project."""

    def __init__(self, project: Project, launches: Launches) -> None:
        self._project = project
        self._launches = launches

    def is_replaced(self, path: str, name: str) -> bool:
        """Whether every final configuration that is based on a file sets a key itself, or in another of its files; False
        if none is based on it, or if the file is launched as well."""
        above = _closure(path, self._derived)
        last = [one for one in above if not self._derived.get(one)]
        if not last or path in self._launched:
            return False
        return all(any(holds_key(self._project, other, name) for other in ({one} | _closure(one, self._bases)) & above) for one in last)

    def is_unused(self, path: str) -> bool:
        """Whether no launch, no Python and no other configuration names a file, although files beside it are bases of
        others, or several are launched."""
        folder = posixpath.dirname(path)
        parts = sum(posixpath.dirname(one) == folder for one in self._derived)
        launched = sum(posixpath.dirname(one) == folder for one in self._launched)
        if not (parts or launched >= _SEVERAL) or path in self._launched or self._derived.get(path) or (parts and self._bases.get(path)):
            return False
        stem = posixpath.splitext(posixpath.basename(path))[0].encode()
        named = re.compile(rb"(?<![\w-])%s(?![\w-])" % re.escape(stem))
        others = (one for one in (*self._project.files, *self._project.others) if one != path)
        return not any(stem in (data := self._project.data(one)) and named.search(data) for one in others)

    @cached_property
    def _launched(self) -> frozenset[str]:
        return frozenset(use.path for program in self._launches.programs for use in program.configs)

    @cached_property
    def _bases(self) -> dict[str, list[str]]:
        files = (path for path in self._project.of_kind(*_KINDS) if _NAMES_BASE.search(self._project.data(path)))
        found = {path: [one for one in self._named(path) if one != path] for path in files}
        return {path: bases for path, bases in found.items() if bases}

    @cached_property
    def _derived(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for path, bases in self._bases.items():
            for base in bases:
                found.setdefault(base, []).append(path)
        return found

    def _named(self, path: str) -> Iterator[str]:
        """The files of the project that the base keys of a file name: below its folder, or a folder around it."""
        document = self._project.document(path)
        written = [one for key in document.children() if key.name in BASE_KEYS for one in (key, *document.children(*key.path))] if document is not None else []
        for text in (one.value for one in written if isinstance(one.value, str)):
            folder = posixpath.dirname(path)
            while folder.startswith(self._project.root):
                found = [full for suffix in ("", *_SUFFIXES) if (full := posixpath.normpath(posixpath.join(folder, text + suffix))) in self._project.others]
                if found:
                    yield found[0]
                    break
                folder = posixpath.dirname(folder)


def _closure(start: str, edges: dict[str, list[str]]) -> set[str]:
    """The files that edges lead to, without the start unless there is a cycle."""
    found: set[str] = set()
    waiting = [start]
    while waiting:
        fresh = [one for one in edges.get(waiting.pop(), ()) if one not in found]
        found.update(fresh)
        waiting += fresh
    return found


__all__ = ["InheritedConfigs"]
