"""The files of a project as lazily read facts, and the imports between them."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING

from ldlm_lint.notebooks import is_notebook
from ldlm_lint.project.called_names import CalledNames, called_names
from ldlm_lint.project.filesets import FileSet, Universe
from ldlm_lint.project.flows import Facts, Flows
from ldlm_lint.project.imports import Imports
from ldlm_lint.project.learning import learns
from ldlm_lint.project.texts import Texts
from ldlm_lint.project.traits import Trait, Traits
from ldlm_lint.python.skim import Recalled, Skim, kept
from ldlm_lint.source import Kind, Source, UnreadableError
from ldlm_lint.testfiles import is_test

if TYPE_CHECKING:
    from typing import TypeVar

    from ldlm_lint.cache.contract import Cache
    from ldlm_lint.configs.document import Document
    from ldlm_lint.project.derivations import Derivations
    from ldlm_lint.project.tables import Tabled, Tables
    from ldlm_lint.project.trees import Trees
    from ldlm_lint.python.flow import CallSite, Function, Guards, ModuleFlow
    from ldlm_lint.shell.script import Script

    T = TypeVar("T")

_EMPTY = Skim(b"")
_DOCUMENTS = (Kind.YAML, Kind.JSON, Kind.TOML)


def dotted_name(path: str, root: str) -> str:
    """The module name of a file by its place under the project's root: ``pkg/data.py`` is ``pkg.data``."""
    relative = posixpath.relpath(path, root) if path.startswith(root.rstrip("/") + "/") else posixpath.basename(path)
    name = relative.removesuffix(".pyi").removesuffix(".py").removesuffix(".pyw").replace("/", ".")
    return name.removesuffix(".__init__")


class Project:
    """The files below a root directory (absolute, forward slashes).

    ``files`` are their absolute paths, ``others`` the scripts and configuration files next to them with their kinds;
    ``overlay`` has contents that are not on disk yet, ``flows`` the facts of files parsed before, ``facts`` the cache
    of earlier runs. The facts of a file are a pure function of its bytes, cached for one run.
    """

    def __init__(
        self,
        root: str,
        files: Iterable[str],
        overlay: Mapping[str, bytes] | None = None,
        flows: Flows | None = None,
        others: Mapping[str, Kind] | None = None,
        facts: Cache | None = None,
        tables: Tables | None = None,
    ) -> None:
        self.root = root
        self._facts = facts
        self.universe = Universe(files)
        self.files = self.universe.all
        self._traits = Traits(self.universe, self.data)
        self._imports = Imports(root, self.universe, self.skim)
        self.others: Mapping[str, Kind] = others or {}
        self._documents: dict[str, Document | None] = {}
        self._scripts: dict[str, Script | None] = {}
        self._overlay = overlay or {}
        self._texts = Texts(self._overlay)
        self._skims: dict[str, Skim] = {}
        self._learned = flows or Flows()
        self._tables = tables
        self._flows = Flows()
        self._guards: dict[str, Guards] = {}
        self._tests: dict[str, bool] = {}
        self._heads: dict[str, tuple[tuple[str, ...], str]] = {}
        self._trainings: dict[int, FileSet] = {}
        self._holding: dict[str, FileSet] = {}
        self._defining: dict[str, FileSet] = {}

    def note(self, kind: str, path: str) -> None:
        """Record a file system look-up that an answer depends on, of a kind of `ldlm_lint.cache.index.LOOKS`."""
        if self._facts is not None:
            self._facts.note(kind, path)

    def data(self, path: str) -> bytes:
        """The bytes of a file; empty if it cannot be read, which its own lint reports."""
        return self._texts.of(path)

    def of_kind(self, *kinds: Kind) -> tuple[str, ...]:
        """The scripts and configuration files of the given kinds, in order."""
        return tuple(sorted(path for path, kind in self.others.items() if kind in kinds))

    def source(self, path: str) -> Source | None:
        """A script or configuration file as a source; None if it cannot be read, which its own lint reports."""
        try:
            return Source.from_bytes(path, self.data(path), self.others[path])
        except UnreadableError:
            return None

    def document(self, path: str) -> Document | None:
        """A YAML, JSON or TOML file of the project as a document; None if it is invalid."""
        if path not in self._documents:
            known = self.others.get(path) in _DOCUMENTS
            self._documents[path] = self._fact("document", path, self._read_document) if known else None
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
        """A shell script of the project as the scanner reads it, or a ``.env`` file as a shell that sources it does."""
        if path not in self._scripts:
            known = self.others.get(path) in (Kind.SHELL, Kind.DOTENV)
            self._scripts[path] = self._fact("script", path, self._scan) if known else None
        return self._scripts[path]

    def _scan(self, path: str) -> Script | None:
        from ldlm_lint.shell.scanner import scan

        source = self.source(path)
        return None if source is None else scan(source)

    def _fact(self, what: str, path: str, compute: Callable[[str], T]) -> T:
        """A fact of a file on disk, from the cache if possible."""
        if self._facts is None or path in self._overlay:
            return compute(path)
        return self._facts.of(what, path, partial(compute, path))

    def tabled(self, path: str) -> Tabled | None:
        """The table of a Python file for the linked program, which keeps it; None without a table."""
        from ldlm_lint.program.of_project import tabled_file
        from ldlm_lint.project.tables import recalled, remembered

        known = self._tables.take(path) if self._tables is not None else None
        if known is not None or self._facts is None or path in self._overlay:
            return known or tabled_file(self, path)
        try:
            return recalled(self._facts.of("table", path, lambda: remembered(tabled_file(self, path))))
        except ValueError:
            return tabled_file(self, path)

    def skim(self, path: str) -> Skim:
        """The facts that need no tree."""
        if path not in self._skims:
            self._skims[path] = self._skimmed(path) if path in self.files else _EMPTY
        return self._skims[path]

    def _skimmed(self, path: str) -> Skim:
        return Recalled(self._fact("skim", path, lambda one: kept(self.data(one))), partial(self.data, path))

    def holders(self, path: str) -> tuple[str, ...]:
        """The copyright holders of a Python file, from its head."""
        return self._headed(path)[0]

    def generated_from(self, path: str) -> str:
        """The package from which a tool generated a Python file, from its head; empty if none is named."""
        return self._headed(path)[1]

    def _headed(self, path: str) -> tuple[tuple[str, ...], str]:
        if path not in self._heads:
            from ldlm_lint.project.holders import head_of

            self._heads[path] = self._fact("head", path, lambda one: head_of(self.data(one)))
        return self._heads[path]

    def flow(self, path: str) -> ModuleFlow:
        """The data flow inside a file; empty if it does not parse at all."""
        return self._known(path).flow

    def drawn(self, path: str, draw: Callable[[ModuleFlow], T]) -> T:
        """A value derived from the flow of a file, cached as long as the flow."""
        return self._known(path).drawn(draw)

    def functions(self, path: str) -> Mapping[str, Function]:
        """The functions of a file by their dotted names."""
        return self._known(path).functions

    def guards(self, path: str) -> Guards:
        """The conditions that may restrict the calls of a file to one process, by the positions of the calls."""
        from ldlm_lint.python.flow import guards_in

        if path not in self._guards:
            # Few questions need them: if they do, the file is parsed again.
            self._guards[path] = self._fact("guards", path, lambda one: self.trees.glance(one, lambda module, _: guards_in(module)) or {})
        return self._guards[path]

    def calls_in(self, path: str, scope: str) -> tuple[CallSite, ...]:
        """The calls of a function, without those of inner functions; the empty scope is the module."""
        return self._known(path).calls.get(scope, ())

    def _known(self, path: str) -> Facts:
        known = self._learned.get(path) or self._flows.get(path)
        return self._flows.put(path, self._fact("flow", path, self._summarize)) if known is None else known

    def _summarize(self, path: str) -> ModuleFlow:
        from ldlm_lint.python.flow import ModuleFlow, summarize

        found = self.trees.glance(path, lambda module, complete: summarize(module, path, complete))
        return ModuleFlow(path, (), (), (), (), complete=False) if found is None else found

    @cached_property
    def trees(self) -> Trees:
        """The trees of files."""
        from ldlm_lint.project.trees import Trees

        return Trees(lambda path: self.data(path) if path in self.files else b"", lambda path: dotted_name(path, self.root))

    def is_test(self, path: str) -> bool:
        """A file of a test suite, by its name and by its place below the root."""
        if path not in self._tests:
            self._tests[path] = is_test(posixpath.relpath(path, self.root))
        return self._tests[path]

    def any_shows(self, paths: Collection[str], trait: Trait) -> bool:
        """Whether the text of one of these Python files has a trait."""
        return self._traits.any(paths, trait)

    def showing(self, trait: Trait) -> FileSet:
        """The Python files whose text has a trait."""
        return self._traits.all(trait)

    def any_skim(self, paths: Collection[str], fact: str) -> bool:
        """Whether one of these Python files has a fact of `Skim`, by its name."""
        return self.any_that(paths, fact, lambda path: bool(getattr(self.skim(path), fact)))

    def any_that(self, paths: Collection[str], name: str, test: Callable[[str], bool]) -> bool:
        """Whether one of these Python files passes a test; each file is tested once per test name."""
        return self._traits.any_that(paths, name, test)

    def resolve(self, importer: str, name: str) -> tuple[str, str] | None:
        """The project file behind a dotted name as an importer writes it, and the name inside that file."""
        return self._imports.resolve(importer, name)

    def importing(self, path: str, name: str) -> FileSet:
        """The files that may import a name of a file."""
        return self._imports.importing(path, name)

    def imports_modules(self, path: str) -> bool:
        """Whether a file may import a whole module of the project, or a package."""
        return self._imports.imports_modules(path)

    def imported_by(self, path: str) -> FileSet:
        """The project files that a file imports directly."""
        return self._imports.imported_by(path)

    def reach(self, path: str) -> FileSet | frozenset[str]:
        """A file and every project file that it imports, directly or through others."""
        return self._imports.reach(path)

    def importers(self, path: str) -> FileSet:
        """The files from which a file is reached by imports, including itself; empty for other than Python files."""
        return self._imports.importers(path)

    def reach_of_all(self, paths: Iterable[str]) -> FileSet:
        """Every file that one of these is or imports, directly or through others."""
        bits, numbers = 0, self.universe.numbers
        for path in paths:
            number = numbers.get(path)
            # The imports of a file in the set are in the set too.
            if number is not None and not bits >> number & 1:
                bits |= self.universe.of(self._imports.reach(path)).bits
        return FileSet(self.universe, bits)

    @cached_property
    def plain(self) -> FileSet:
        """The files that belong to no test suite."""
        return self.universe.of(path for path in self.files if not self.is_test(path))

    @cached_property
    def training_files(self) -> FileSet:
        """The files that run a training: those with a backward pass, or that pass it to a Trainer; not the tests."""
        return self.universe.of(path for path in self.plain if self.skim(path).trains and learns(self, path))

    def trainers_of(self, path: str) -> FileSet:
        """The files from which both a file and a training are reached by imports: they bring the two together."""
        return self.importers(path) & self._reaching_training

    def trainings_of(self, path: str) -> FileSet:
        """All files of the trainings that use a file."""
        trainers = self.trainers_of(path)
        if trainers.bits not in self._trainings:
            self._trainings[trainers.bits] = self.reach_of_all(trainers)
        return self._trainings[trainers.bits]

    def around(self, path: str) -> FileSet:
        """A file and its imports, and all files of the trainings that use it."""
        return self.universe.joined(self.trainings_of(path), self.reach(path))

    def calling(self, name: str) -> FileSet:
        """The files that call this last name, or import it under another one."""
        return FileSet(self.universe, self._called.names.get(name, 0) | self._renamed.get(name, 0))

    def calling_by_name(self, name: str) -> FileSet:
        """The files that call this last name."""
        return FileSet(self.universe, self._called.names.get(name, 0))

    def calling_member(self, name: str) -> FileSet:
        """The files that call a name on a module or an object: ``module.function(…)``."""
        return FileSet(self.universe, self._called.members.get(name, 0))

    def calls_spaced(self, path: str, name: str) -> bool:
        """Whether a file may have a blank between a called name and the parenthesis."""
        return path in FileSet(self.universe, self._called.spaced.get(name, 0))

    @cached_property
    def _called(self) -> CalledNames:
        # The index replaces the names: both together would take much memory.
        return called_names(self.skim(path).hand_over_called() for path in self.universe.paths)

    @cached_property
    def _renamed(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for number, path in enumerate(self.universe.paths):
            for name in self.skim(path).renamed:
                found[name] = found.get(name, 0) | 1 << number
        return found

    def methods(self, name: str) -> Mapping[str, int]:
        """The files with functions of this name inside of classes or others, and how many there are in each."""
        return self._methods.get(name, {})

    def holding(self, name: str) -> FileSet:
        """The files of `methods`, as a set."""
        if name not in self._holding:
            self._holding[name] = self.universe.of(self.methods(name))
        return self._holding[name]

    @cached_property
    def derivations(self) -> Derivations:
        """Which classes are derived from which."""
        from ldlm_lint.project.derivations import Derivations

        return Derivations(self.files, self.data)

    def defining(self, name: str) -> FileSet:
        """The files with a function or class of this name, at any depth."""
        if name not in self._defining:
            files = zip(self.universe.paths, self._defined, strict=True)
            self._defining[name] = self.universe.of([path for path, names in files if name in names])
        return self._defining[name]

    @cached_property
    def _defined(self) -> list[frozenset[str]]:
        """The names of the functions and classes of each file, in order."""
        return [self.skim(path).defined for path in self.universe.paths]

    @cached_property
    def _methods(self) -> dict[str, dict[str, int]]:
        found: dict[str, dict[str, int]] = {}
        for path in self.files:
            for name, amount in self.skim(path).methods.items():
                found.setdefault(name, {})[path] = amount
        return found

    @cached_property
    def _reaching_training(self) -> FileSet:
        """The files, without tests, from which a training is reached by imports."""
        found = self.universe.of(())
        for path in self.training_files:
            found = FileSet(self.universe, found.bits | self.importers(path).bits)
        # A notebook that imports a library with training code mostly shows results.
        shows = self.universe.of(filter(is_notebook, self.files)) - self.training_files
        return (found & self.plain) - shows
