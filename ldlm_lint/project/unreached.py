"""Functions, classes and methods that no program of a project reaches: their module is imported, but no running code
mentions them, or they are in a package that the project does not use at all.

A program is a file that is not imported and does something itself. Uncertain code counts as reached: names in tests,
configurations or scripts, code kept by a decorator, names computed at run time, the interface of a package, and imports
of a file that is not a program.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from ldlm_lint.notebooks import is_notebook
from ldlm_lint.patterns import lazily
from ldlm_lint.project.builds import build_texts
from ldlm_lint.python.mentions import NOTHING, Mentions, Method, Part, mentions_in
from ldlm_lint.python.skim import holds_any
from ldlm_lint.python.syntax import syntax_of
from ldlm_lint.reach import Reach, Standing
from ldlm_lint.source import Kind, Source, UnreadableError

if TYPE_CHECKING:
    from ldlm_lint.project.filesets import FileSet
    from ldlm_lint.project.index import Project

# Calls that may run or look up code by a computed name.
_COMPUTED = lazily(
    rb"import_module\((?![ \t\n]*[\"'][\w.]+[\"'][ \t\n]*[,)])|__import__\((?![ \t\n]*[\"'])|sys\.modules"
    rb"|exec\((?<![\w.]exec\()"
)
_COMPUTED_WORDS = (b"import_module(", b"__import__(", b"sys.modules", b"exec(")
# Calls that read a computed name among those of the file itself.
_OWN_NAMES = lazily(rb"eval\((?<![\w.]eval\()|globals\(\)|locals\(\)")
_OWN_NAMES_WORDS = (b"eval(", b"globals()", b"locals()")
# A module whose names are looked up: the module's name decides which of them are reached.
_LOOKED_UP = (
    (lazily(rb"(\w+)\.__dict__"), b".__dict__"),
    (lazily(rb"(?:get|has)attr\((\w+)[ \t]*,(?![ \t\n]*[\"'])"), b"attr("),
    (lazily(rb"vars\((\w+)\)"), b"vars("),
    (lazily(rb"dir\((\w+)\)"), b"dir("),
    (lazily(rb"getmembers\((\w+)"), b"getmembers("),
)
_SUBCLASSES = lazily(rb"__init_subclass__|__subclasses__|metaclass[ \t]*=")
_SUBCLASSES_WORDS = (b"subclass", b"metaclass")
_PLAIN = frozenset({"object", "ABC", "Generic", "Protocol"})
_OF_MODULES = frozenset({"forward", "train", "eval", "extra_repr", "get_extra_state", "set_extra_state", "state_dict", "load_state_dict", "named_parameters", "parameters"})
"""Methods of `torch.nn.Module` that torch calls itself, also if a class overrides them."""
_INIT = "/__init__.py"
_MAIN = b"__main__"


class Unreached:
    """Tells which parts of a project's files no program reaches."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._root = project.root.rstrip("/")
        self._mentions: dict[str, Mentions] = {}
        self._known: dict[str, bool] = {}
        self._names: dict[str, bool] = {}
        self._lookups: dict[str, frozenset[str]] = {}
        self._unused: dict[str, bool] = {}

    def standing(self, path: str, line: int) -> Standing | None:
        """The `Standing` of the code at a line of a file if no program reaches it; else None."""
        if path not in self._project.plain or is_notebook(path):
            return None
        package = self._package(path)
        if package and self._is_unused(package):
            return Standing(Reach.UNREACHED, f"{package}/")
        if not self._is_known(path):
            return None
        part = self._of(path).part_at(line)
        if part is None:
            return None
        method = part.method_at(line)
        runs = self._runs(path, part) or self._is_reached(part.name)
        return None if runs and (method is None or self._may_be_called(part, method)) else Standing(Reach.UNREACHED, path)

    def _may_be_called(self, part: Part, method: Method) -> bool:
        """Whether anything may call a method of a class that is used."""
        return self._is_called_without(part, method) or self._is_reached(method.name)

    def _is_called_without(self, part: Part, method: Method) -> bool:
        """Whether a method may be called though nothing mentions its whole name: by Python, by a class of another package
        that it overrides something of, or by a name that is put together."""
        if method.announced or method.name.startswith("__") or not self._is_own(part, method, set()):
            return True
        return any(method.name.startswith(one) or method.name.endswith(one) for one in self._pieces)

    def _is_own(self, part: Part, method: Method, seen: set[str]) -> bool:
        """Whether all bases of a class are of the project, or call no method of this name."""
        seen.add(part.name)
        for base in part.bases:
            if base in seen or base in _PLAIN or (base == "Module" and method.name not in _OF_MODULES and method.name[0] != "_"):
                continue
            found = [one for path in self._holding(base) for one in self._of(path).parts if one.name == base] if base else []
            if not found or not all(self._is_own(one, method, seen) for one in found):
                return False
        return True

    @cached_property
    def _pieces(self) -> frozenset[str]:
        """The parts of names in files that look up a computed one: ``getattr(self, f"{task}_step")``."""
        computing = (path for path in self._project.universe.paths if b"getattr(" in self._project.data(path))
        found = (code.pieces for path in computing for code in (self._of(path).own, *(one.code for one in self._of(path).parts)))
        return frozenset().union(*found)

    def _package(self, path: str) -> str:
        """The outermost package that a file is in; empty for a module without one."""
        folder, found = posixpath.dirname(path), ""
        while folder != self._root and folder + _INIT in self._project.files:
            folder, found = posixpath.dirname(folder), folder
        return found

    def _is_unused(self, package: str) -> bool:
        """Whether the project trains without a package: it holds no training, is not built for others, and no file
        outside of it mentions its name."""
        if package not in self._unused:
            self._unused[package] = self._find_unused(package)
        return self._unused[package]

    def _find_unused(self, package: str) -> bool:
        project = self._project
        inside = [one for one in project.files if one.startswith(f"{package}/")]
        outside = [one for one in project.files if not one.startswith(f"{package}/")]
        if self.is_offered(inside[0]) or not any(one in project.training_files for one in outside):
            return False
        if any(_MAIN in project.data(one) and one in project.training_files for one in inside):
            return False
        name = os.fsencode(posixpath.basename(package))
        if any(name in project.data(one) for one in (*outside, *project.others, self._readme)) or any(map(self._computes, outside)):
            return False
        return not any(project.importers(one) & project.universe.of(outside) for one in inside)

    @cached_property
    def _readme(self) -> str:
        path = f"{self._root}/README.md"
        self._project.note("file", path)
        return path

    def _of(self, path: str) -> Mentions:
        if path not in self._mentions:
            self._mentions[path] = self._read(path)
        return self._mentions[path]

    def _read(self, path: str) -> Mentions:
        """The names that a file mentions; an unreadable one may mention anything, and its parts are not judged."""
        try:
            tree = syntax_of(Source.from_bytes(path, self._project.data(path), Kind.PYTHON))
        except UnreadableError:
            return NOTHING
        return NOTHING if tree is None else mentions_in(tree)

    def _is_known(self, path: str) -> bool:
        """Whether all programs that import a file are known, and none of them looks code up by computed names."""
        if path not in self._known:
            self._known[path] = self._has_known_programs(path)
        return self._known[path]

    def _has_known_programs(self, path: str) -> bool:
        project = self._project
        if self.is_offered(path):
            return False
        importers = project.importers(path) & project.plain
        programs = [one for one in importers if one != path and self._begins(one)]
        if not programs or not all(map(self._acts, programs)):
            return False
        used = project.reach_of_all(programs)
        if project.any_that(used, "computes-names", self._computes):
            return False
        return not any(path in self._looked_up(one) for one in used)

    def _begins(self, path: str) -> bool:
        """Whether a file is not imported, or is also a program."""
        return path not in self._imported or _MAIN in self._project.data(path)

    def _acts(self, path: str) -> bool:
        """Whether a file does something when it is run; otherwise its users are unknown."""
        return _MAIN in self._project.data(path) or self._of(path).acts

    @cached_property
    def _imported(self) -> FileSet:
        project = self._project
        return project.universe.joined(*(project.imported_by(path) for path in project.plain))

    def is_offered(self, path: str) -> bool:
        """Whether a file belongs to a package that is built for others to import, or is named by its build."""
        if not self._builds:
            return False
        module = os.fsencode(posixpath.basename(path).removesuffix(".py"))
        if any(module in text for text in self._builds):
            return True
        folder = posixpath.dirname(path)
        while folder != self._root and folder.startswith(self._root):
            if folder + _INIT in self._project.files or posixpath.basename(folder) == "src":
                return True
            folder = posixpath.dirname(folder)
        return False

    @cached_property
    def _builds(self) -> tuple[bytes, ...]:
        return build_texts(self._project)

    def _computes(self, path: str) -> bool:
        data = self._project.data(path)
        return holds_any(data, _COMPUTED_WORDS) and _COMPUTED.search(data) is not None

    def _looked_up(self, path: str) -> frozenset[str]:
        """The files whose names a file looks up one by one, by a name that it computes."""
        if path not in self._lookups:
            self._lookups[path] = self._find_looked_up(path)
        return self._lookups[path]

    def _find_looked_up(self, path: str) -> frozenset[str]:
        project, data = self._project, self._project.data(path)
        if holds_any(data, _OWN_NAMES_WORDS) and _OWN_NAMES.search(data):
            return frozenset({path}.union(*map(self._with_imported, self._modules_held(path))))
        names = {name.decode(errors="replace") for pattern, word in _LOOKED_UP if word in data for name in pattern.findall(data)}
        found: set[str] = set()
        for imported in project.skim(path).bound if names else ():
            last = imported.rpartition(".")[2]
            # A renamed import may have any name.
            if names.isdisjoint((last, imported.lstrip(".").partition(".")[0])) and last not in project.skim(path).renamed:
                continue
            module = project.resolve(path, imported)
            if module is not None and not module[1]:
                found |= self._with_imported(module[0])
        return frozenset(found)

    def _with_imported(self, module: str) -> set[str]:
        return {module, *self._project.imported_by(module)}

    def _modules_held(self, path: str) -> Iterator[str]:
        """The modules that a file binds to a name, or imports with a star; single imports are mentioned there."""
        for imported in self._project.skim(path).bound:
            module = self._project.resolve(path, imported.removesuffix(".*"))
            if module is not None and not module[1]:
                yield module[0]

    def _is_reached(self, name: str) -> bool:
        """Whether running code mentions a name, directly or transitively."""
        if name not in self._names:
            self._names[name] = True
            seen: set[str] = set()
            reached = self._leads_to_running(name, seen)
            self._names[name] = reached
            if not reached:
                # Code that mentions one of these does not run either.
                self._names.update(dict.fromkeys(seen, False))
        return self._names[name]

    def _leads_to_running(self, name: str, seen: set[str]) -> bool:
        waiting = [name]
        while waiting:
            wanted = waiting.pop()
            if wanted in seen:
                continue
            seen.add(wanted)
            if self._is_mentioned_outside(wanted):
                return True
            for path in self._holding(wanted):
                mentions = self._of(path)
                if mentions is NOTHING or wanted in mentions.own.words or self._project.is_test(path):
                    return True
                for part in mentions.parts:
                    if part.name != wanted and wanted in part.code.words:
                        used = self._used_by(part, wanted)
                        if part.name in used and self._runs(path, part):
                            return True
                        waiting += used
        return False

    def _used_by(self, part: Part, name: str) -> list[str]:
        """The names that must be mentioned for the code of a part to run that mentions a name: its own, or those of the
        methods that do so, unless something else may call these."""
        if part.beside is None or name in part.beside.words:
            return [part.name]
        methods = [one for one in part.methods if one.name != name and name in one.code.words]
        return [part.name if self._is_called_without(part, one) else one.name for one in methods]

    def _runs(self, path: str, part: Part) -> bool:
        """Whether a part of a file may run without being mentioned."""
        kept = part.announced or (part.derived and self._keeps_subclasses)
        return kept or not self._is_known(path) or self._names.get(part.name, False)

    @cached_property
    def _keeps_subclasses(self) -> bool:
        """Whether a class of the project is notified of its subclasses."""
        texts = (self._project.data(path) for path in self._project.universe.paths)
        return any(holds_any(data, _SUBCLASSES_WORDS) and _SUBCLASSES.search(data) for data in texts)

    def _holding(self, name: str) -> Iterator[str]:
        word = name.encode()
        return (path for path in self._project.universe.paths if word in self._project.data(path))

    def _is_mentioned_outside(self, name: str) -> bool:
        """Whether a script, a configuration or a file of another kind contains the word."""
        return any(name.encode() in self._project.data(path) for path in self._project.others)


def merged(standings: Iterable[Standing]) -> dict[Standing, Standing]:
    """The name of unreached code in a report: the folder if several of its files are concerned, else the file."""
    unreached = {one for one in standings if one.reach is Reach.UNREACHED}
    folders: dict[str, int] = {}
    for one in unreached:
        folder = posixpath.dirname(one.area)
        folders[folder] = folders.get(folder, 0) + 1
    return {one: one._replace(area=f"{folder}/") for one in unreached if folders[folder := posixpath.dirname(one.area)] > 1}
