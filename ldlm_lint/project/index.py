"""The files of a project as lazily read facts, and the imports between them."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from ldlm_lint.notebooks import is_notebook
from ldlm_lint.python.flow import CallSite, Function, ModuleFlow, summarize
from ldlm_lint.python.skim import Skim
from ldlm_lint.python.tree import parse
from ldlm_lint.source import Kind, Source, UnreadableError, read_bytes

if TYPE_CHECKING:
    from ldlm_lint.configs.document import Document
    from ldlm_lint.shell.script import Script

_TEST_NAME = re.compile(r"(^|/)(test_[^/]*|[^/]*_tests?|conftest)\.pyi?$")
_TEST_FOLDER = re.compile(r"(^|/)tests?/")
_EMPTY = Skim(b"")
_DOCUMENTS = (Kind.YAML, Kind.JSON, Kind.TOML)


def dotted_name(path: str, root: str) -> str:
    """The module name of a file by its place under the project's root: ``pkg/data.py`` is ``pkg.data``."""
    relative = posixpath.relpath(path, root) if path.startswith(root.rstrip("/") + "/") else posixpath.basename(path)
    name = relative.removesuffix(".pyi").removesuffix(".py").removesuffix(".pyw").replace("/", ".")
    return name.removesuffix(".__init__")


def _code(path: str, data: bytes) -> bytes:
    """The bytes of a file; of a notebook those of its code."""
    if not is_notebook(path):
        return data
    try:
        return Source.from_bytes(path, data, Kind.PYTHON).data
    except UnreadableError:
        return b""


class Project:
    """The files below a root directory (absolute, forward slashes).

    ``files`` are their absolute paths, ``others`` the scripts and configuration files beside them with their kinds;
    ``overlay`` holds contents that are not on disk yet,
    ``flows`` what is known of files that were parsed before. What a file yields is
    a pure function of its bytes, kept for the time of one run.
    """

    def __init__(
        self,
        root: str,
        files: Iterable[str],
        overlay: Mapping[str, bytes] | None = None,
        flows: Mapping[str, ModuleFlow] | None = None,
        others: Mapping[str, Kind] | None = None,
    ) -> None:
        self.root = root
        self.files = frozenset(files)
        self.others: Mapping[str, Kind] = others or {}
        self._documents: dict[str, Document | None] = {}
        self._scripts: dict[str, Script | None] = {}
        self._overlay = overlay or {}
        self._data: dict[str, bytes] = {}
        self._skims: dict[str, Skim] = {}
        self._flows: dict[str, ModuleFlow] = dict(flows or {})
        self._tests: dict[str, bool] = {}
        self._trainers: dict[str, tuple[str, ...]] = {}
        self._trainings: dict[tuple[str, ...], frozenset[str]] = {}
        self._functions: dict[str, dict[str, Function]] = {}
        self._scopes: dict[str, dict[str, tuple[CallSite, ...]]] = {}
        self._reach: dict[str, frozenset[str]] = {}
        self._imported: dict[str, frozenset[str]] = {}
        self._resolved: dict[tuple[str, str], tuple[str, str] | None] = {}

    def data(self, path: str) -> bytes:
        """The bytes of a file; empty where it cannot be read, which its own lint reports."""
        if path not in self._data:
            try:
                self._data[path] = _code(path, self._overlay[path] if path in self._overlay else read_bytes(Path(path)))
            except (OSError, UnreadableError):
                self._data[path] = b""
        return self._data[path]

    def of_kind(self, *kinds: Kind) -> tuple[str, ...]:
        """The scripts and configuration files of the given kinds, in order."""
        return tuple(sorted(path for path, kind in self.others.items() if kind in kinds))

    def source(self, path: str) -> Source | None:
        """A script or configuration file as a source; None where it cannot be read, which its own lint reports."""
        try:
            return Source.from_bytes(path, self.data(path), self.others[path])
        except UnreadableError:
            return None

    def document(self, path: str) -> Document | None:
        """A YAML, JSON or TOML file of the project as a document; None where it is none."""
        if path not in self._documents:
            self._documents[path] = self._read_document(path) if self.others.get(path) in _DOCUMENTS else None
        return self._documents[path]

    def _read_document(self, path: str) -> Document | None:
        from ldlm_lint.configs.document import DocumentError
        from ldlm_lint.configs.read import read

        source = self.source(path)
        try:
            return None if source is None else read(source)
        except DocumentError:
            return None

    def script(self, path: str) -> Script | None:
        """A shell script of the project as the scanner reads it."""
        if path not in self._scripts:
            from ldlm_lint.shell.scanner import scan

            source = self.source(path) if self.others.get(path) is Kind.SHELL else None
            self._scripts[path] = None if source is None else scan(source)
        return self._scripts[path]

    def skim(self, path: str) -> Skim:
        """The facts that need no tree."""
        if path not in self._skims:
            self._skims[path] = Skim(self.data(path)) if path in self.files else _EMPTY
        return self._skims[path]

    def flow(self, path: str) -> ModuleFlow:
        """Where values go inside a file; empty for one that does not parse at all."""
        if path not in self._flows:
            self._flows[path] = self._summarize(path)
        return self._flows[path]

    def functions(self, path: str) -> Mapping[str, Function]:
        """The functions of a file by their dotted names."""
        if path not in self._functions:
            self._functions[path] = {function.scope: function for function in self.flow(path).functions}
        return self._functions[path]

    def calls_in(self, path: str, scope: str) -> tuple[CallSite, ...]:
        """The calls of a function, those of functions inside it left out; of a module for the empty scope."""
        if path not in self._scopes:
            found: dict[str, list[CallSite]] = {}
            for call in self.flow(path).calls:
                found.setdefault(call.scope, []).append(call)
            self._scopes[path] = {name: tuple(calls) for name, calls in found.items()}
        return self._scopes[path].get(scope, ())

    def _summarize(self, path: str) -> ModuleFlow:
        try:
            source = Source.from_bytes(path, self.data(path), Kind.PYTHON)
        except UnreadableError:
            return ModuleFlow(path, (), (), (), (), complete=False)
        parsed = parse(source, dotted_name(path, self.root))
        if parsed.module is None:
            return ModuleFlow(path, (), (), (), (), complete=False)
        return summarize(parsed.module, path, complete=not parsed.error_line)

    def is_test(self, path: str) -> bool:
        """A file of a test suite, by its name and by its place below the root."""
        if path not in self._tests:
            relative = posixpath.relpath(path, self.root)
            self._tests[path] = _TEST_NAME.search(relative) is not None or _TEST_FOLDER.search(relative) is not None
        return self._tests[path]

    def resolve(self, importer: str, name: str) -> tuple[str, str] | None:
        """The project file behind a dotted name as an importer writes it, and the name inside that file.

        An absolute import is looked up from the importer's folder upwards to the root, as ``sys.path`` of a script
        in any of these folders would; a name that a package re-exports is followed to where it is defined.
        """
        key = (importer, name)
        if key not in self._resolved:
            self._resolved[key] = None
            self._resolved[key] = self._resolve(importer, name)
        return self._resolved[key]

    def _resolve(self, importer: str, name: str) -> tuple[str, str] | None:
        bare = name.lstrip(".")
        level = len(name) - len(bare)
        for folder in self._folders(importer, level):
            found = self._below(folder, bare, package=level > 0)
            if found is not None:
                return self._defining(*found)
        return None

    def _folders(self, importer: str, level: int) -> Iterator[str]:
        folder = posixpath.dirname(importer)
        if level:
            for _ in range(level - 1):
                folder = posixpath.dirname(folder)
            yield folder
            return
        while folder.startswith(self.root) and folder != self.root:
            yield folder
            folder = posixpath.dirname(folder)
        yield self.root
        yield posixpath.join(self.root, "src")

    def _below(self, folder: str, name: str, *, package: bool) -> tuple[str, str] | None:
        """The file of a module below a folder; for a relative import also the folder's own ``__init__.py``."""
        parts = name.split(".") if name else []
        for end in range(len(parts), -1 if package else 0, -1):
            base = posixpath.join(folder, *parts[:end])
            for path in (base + ".py", base + "/__init__.py") if end else (folder + "/__init__.py",):
                if path in self.files:
                    return path, ".".join(parts[end:])
        return None

    def _defining(self, path: str, name: str) -> tuple[str, str]:
        first = name.partition(".")[0]
        facts = self.skim(path)
        if first in ("", "*") or first in facts.defined:
            return path, name
        for imported in facts.imports:
            if imported.rpartition(".")[2] == first and (found := self.resolve(path, imported)) and found[0] != path:
                return found[0], found[1] + name[len(first) :]
        return self._behind_star(path, name) or (path, name)

    def _behind_star(self, path: str, name: str) -> tuple[str, str] | None:
        """Where a name is defined that a file may take from ``from module import *``."""
        for imported in self.skim(path).imports:
            if not imported.endswith("*"):
                continue
            module = self.resolve(path, imported.removesuffix("*").rstrip(".") or imported.removesuffix("*"))
            if module is None or module[1] or module[0] == path:
                continue
            found = self.resolve(path, imported.removesuffix("*") + name)
            if found and name.partition(".")[0] in self.skim(found[0]).defined:
                return found
        return None

    def imported_by(self, path: str) -> frozenset[str]:
        """The project files that a file imports directly."""
        if path not in self._imported:
            found = (self.resolve(path, name) for name in self.skim(path).imports)
            self._imported[path] = frozenset(target[0] for target in found if target is not None) - {path}
        return self._imported[path]

    def reach(self, path: str) -> frozenset[str]:
        """A file and every project file that it imports, directly or through others."""
        if path not in self._reach:
            seen, waiting = {path}, [path]
            while waiting:
                for target in self.imported_by(waiting.pop()) - seen:
                    seen.add(target)
                    waiting.append(target)
            self._reach[path] = frozenset(seen)
        return self._reach[path]

    @cached_property
    def training_files(self) -> frozenset[str]:
        """The files that run a training: those with a backward pass, or that hand it to a Trainer; not the tests."""
        return frozenset(path for path in self.files if self.skim(path).trains and not self.is_test(path))

    def trainers_of(self, path: str) -> tuple[str, ...]:
        """The files from which both a file and a training are reached by imports: they bring the two together."""
        if path not in self._trainers:
            self._trainers[path] = tuple(one for one in self._reaching_training if path in self.reach(one))
        return self._trainers[path]

    def trainings_of(self, path: str) -> frozenset[str]:
        """All files of the trainings that use a file."""
        trainers = self.trainers_of(path)
        if trainers not in self._trainings:
            self._trainings[trainers] = frozenset().union(*map(self.reach, trainers))
        return self._trainings[trainers]

    def calling(self, name: str) -> tuple[str, ...]:
        """The files that call something by this last name, or import it under another one, in order."""
        return self._calling.get(name, ())

    @cached_property
    def _calling(self) -> dict[str, tuple[str, ...]]:
        found: dict[str, list[str]] = {}
        for path in sorted(self.files):
            for name in self.skim(path).called | self.skim(path).renamed:
                found.setdefault(name, []).append(path)
        return {name: tuple(paths) for name, paths in found.items()}

    @cached_property
    def _reaching_training(self) -> tuple[str, ...]:
        """The files, tests left out, from which a training is reached by imports."""
        plain = (path for path in sorted(self.files) if not self.is_test(path))
        return tuple(path for path in plain if not self.training_files.isdisjoint(self.reach(path)))
