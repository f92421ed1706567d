"""The configurations of OpenMMLab's projects (mmcv, mmengine): Python files of plain assignments, some of which inherit
from others."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from functools import cached_property

from ldlm_lint.patterns import lazily
from ldlm_lint.project.index import Project
from ldlm_lint.project.traits import Trait

_RUNNER = Trait(lazily(rb"(?m)^[ \t]*(?:from|import)[ \t]+(?:mmcv|mmengine)\b"), (b"mmcv", b"mmengine"))
# A file that defines or calls for torch is a program.
_PROGRAM = lazily(rb"(?m)^(?:(?:async[ \t]+)?def|class)[ \t]|^[ \t]*(?:from|import)[ \t]+torch\b|__main__")
_BASES = lazily(rb"(?m)^_base_[ \t]*=[ \t]*(\[[^\]]*\]|\([^)]*\)|[^\n]*)")
_NAMES = re.compile(rb"[\"']([^\"'\n]+\.py)[\"']")
_MODEL = lazily(rb"(?m)^model[ \t]*=")
_DATA = lazily(rb"(?m)^(?:data|train_dataloader)[ \t]*=")
_READS_OTHERS = lazily(rb"\bread_base\b")


class MmConfigs:
    """The Python files of a project that are such configurations, and their inheritance."""

    def __init__(self, project: Project) -> None:
        self._project = project

    def is_config(self, path: str) -> bool:
        """Whether a file contains only settings, in a project with a runner of these."""
        project = self._project
        if project.is_test(path) or _PROGRAM.search(project.data(path)):
            return False
        return project.any_shows(project.plain, _RUNNER)

    def is_settled_elsewhere(self, path: str, word: bytes) -> bool:
        """Whether every configuration derived from a file (or the file itself if there is none) sets a setting in
        another of its files.

        Also true if files read each other by imports: their combined contents are unknown then.
        """
        return all(self.is_named(files - {path}, word) for files in self.compositions(path))

    def compositions(self, path: str) -> list[set[str]]:
        """The files of each final configuration derived from a file (of itself if there is none, or if it may run as
        well); empty if files read each other by imports."""
        stem = posixpath.basename(path).removesuffix(".py").encode()
        if any(one == path or stem in self._project.data(one) for one in self._importing):
            return []
        above = _closure([path], self._derived)
        last = [one for one in above if not self._derived.get(one)] or [path]
        own = {path} | _closure([path], self._bases)
        return [*([own] if last != [path] and self._may_run(own) else []), *({one} | _closure([one], self._bases) for one in last)]

    def _may_run(self, files: set[str]) -> bool:
        """Whether files together are a whole configuration, although others inherit from it: they have a model and data."""
        texts = [self._project.data(one) for one in files if one in self._project.files]
        return any(map(_MODEL.search, texts)) and any(map(_DATA.search, texts))

    def is_unused(self, path: str) -> bool:
        """Whether a file is a part that no configuration takes, such as ``_base_/schedule_160k.py``, in a folder of parts.

        It has no bases, and no model, which each runner of these needs; no configuration inherits from it, and no other
        file names it.
        """
        project = self._project
        if self._derived.get(path) or self._bases.get(path) or _MODEL.search(project.data(path)) or not self._is_beside_parts(path):
            return False
        stem = posixpath.basename(path).removesuffix(".py").encode()
        named = re.compile(rb"(?<![\w-])%s(?:\.py)?(?![\w-])" % re.escape(stem))
        # The names of bases are known: the same name there is that of a file in another folder.
        others = (one for one in (*project.files, *project.others) if one != path and one not in self._bases)
        return not any(stem in (data := project.data(one)) and named.search(data) for one in others)

    def _is_beside_parts(self, path: str) -> bool:
        """Whether the folder of a file has parts of configurations, or the folder around it has nothing but such folders."""
        folder = posixpath.dirname(path) + "/"
        around = posixpath.dirname(folder.rstrip("/")) + "/"
        if any(posixpath.dirname(one) + "/" == folder for one in self._derived):
            return True
        return any(one.startswith(around) for one in self._derived) and not any(one.startswith(around) for one in self._bases)

    def made_of(self, path: str) -> set[str]:
        """The configurations derived from a file."""
        return _closure([path], self._derived)

    def is_overridden(self, path: str, word: bytes) -> bool:
        """Whether every configuration derived from a file overrides a variable of it; False if there is none."""
        above = _closure([path], self._derived)
        last = [one for one in above if not self._derived.get(one)]
        if self._may_run({path} | _closure([path], self._bases)):
            return False
        return bool(last) and all(self.is_named(({one} | _closure([one], self._bases)) & above, word) for one in last)

    def is_named(self, paths: set[str], word: bytes) -> bool:
        """Whether one of these files contains a word."""
        return any(word in self._project.data(one) for one in paths if one in self._project.files)

    @cached_property
    def _importing(self) -> list[str]:
        return [path for path in self._project.files if _READS_OTHERS.search(self._project.data(path))]

    @cached_property
    def _bases(self) -> dict[str, list[str]]:
        project = self._project
        return {path: list(self._named(path)) for path in project.files if b"_base_" in project.data(path)}

    @cached_property
    def _derived(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for path, bases in self._bases.items():
            for base in bases:
                found.setdefault(base, []).append(path)
        return found

    def _named(self, path: str) -> Iterator[str]:
        """The files that the ``_base_`` of a configuration names."""
        for match in _BASES.finditer(self._project.data(path)):
            for name in _NAMES.findall(match[1]):
                yield posixpath.normpath(posixpath.join(posixpath.dirname(path), name.decode(errors="replace")))


def _closure(starts: list[str], edges: dict[str, list[str]]) -> set[str]:
    """The nodes reachable from the starts, without the starts unless there is a cycle."""
    found: set[str] = set()
    waiting = list(starts)
    while waiting:
        fresh = [one for one in edges.get(waiting.pop(), ()) if one not in found]
        found.update(fresh)
        waiting += fresh
    return found


__all__ = ["MmConfigs"]
