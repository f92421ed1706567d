"""The imports between the files of a project: the meaning of dotted names, and which files reach which."""

from __future__ import annotations

import posixpath
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property

from ldlm_lint.project.components import components
from ldlm_lint.project.filesets import FileSet, Universe
from ldlm_lint.python.skim import Skim

Defined = tuple[str, str]
"""A file, and a name inside it; empty for the module itself."""

_ANYTHING = ("", "*")


class Imports:
    """Resolves names to files, and finds direct and indirect importers."""

    def __init__(self, root: str, universe: Universe, skim: Callable[[str], Skim]) -> None:
        self._root = root
        self._universe = universe
        self._files = universe.numbers.keys()
        self._skim = skim
        self._resolved: defaultdict[str, dict[str, Defined | None]] = defaultdict(dict)
        self._folders: dict[tuple[str, str], tuple[str, ...]] = {}
        self._added: dict[str, tuple[str, ...]] = {}
        self._imported: dict[str, FileSet] = {}
        self._modules: dict[str, bool] = {}
        self._by_name: dict[str, Mapping[str, tuple[str, ...]]] = {}

    def resolve(self, importer: str, name: str) -> Defined | None:
        """The project file behind a dotted name as written by an importer, and the name inside that file.

        An absolute import is looked up from the importer's folder upwards to the root, as ``sys.path`` of a script in
        any of these folders would, then in the folders that the importer, or a module that it imports, adds to
        ``sys.path``; a re-exported name is followed to its definition.
        """
        if not name.startswith(".") and name.partition(".")[0] not in self._heads:
            return None
        # A name means the same to all files of a folder, and these mostly import the same.
        folder = importer.rpartition("/")[0]
        known = self._resolved[folder]
        if name not in known:
            known[name] = None
            known[name] = self._resolve(folder, name)
        found = known[name]
        if found is None and not name.startswith(".") and (added := self._added_for(importer)):
            return self._resolve_below(folder, added, name)
        return found

    def _added_for(self, importer: str) -> tuple[str, ...]:
        """The folders that a file adds to ``sys.path``, or that a module next to it does that it imports: ``import
        _init_paths``."""
        known = self._added.get(importer)
        if known is None:
            skim = self._skim(importer)
            beside = {name.partition(".")[0] for name in skim.imports if not name.startswith(".")} - {""}
            paths = (f"{importer.rpartition('/')[0]}/{name}.py" for name in sorted(beside))
            added = [one for path in paths if path in self._files and path != importer for one in self._skim(path).searched]
            known = self._added[importer] = tuple(dict.fromkeys([*skim.searched, *added]))
        return known

    @cached_property
    def _entries(self) -> frozenset[str]:
        """Every folder that holds a module at some depth, and every module without its ending."""
        found: set[str] = set()
        for path in self._files:
            entry = path.removesuffix(".py")
            while entry not in found and len(entry) > 1:
                found.add(entry)
                entry = posixpath.dirname(entry)
        return frozenset(found)

    @cached_property
    def _heads(self) -> frozenset[str]:
        """The names with which the dotted name of a module of the project may begin."""
        return frozenset(entry.rpartition("/")[2] for entry in self._entries)

    def _resolve(self, folder: str, name: str) -> Defined | None:
        bare = name.lstrip(".")
        level = len(name) - len(bare)
        first = None
        for one in self._above(folder, level) if level else self._upwards(folder, bare.partition(".")[0]):
            found = self._below(one, bare, package=level > 0)
            if found is not None and self._may_have(*found):
                return self._defining(found)
            first = first or found
        return self._defining(first) if first is not None else None

    def _may_have(self, path: str, name: str) -> bool:
        """Whether a file may have such a name: in ``data/data.py`` the name ``data.utils`` refers to the folder, not to
        itself."""
        head, skim = name.partition(".")[0], self._skim(path)
        return not head or head in skim.defined or any(one.rpartition(".")[2] in (head, "*") for one in skim.bound)

    def _resolve_below(self, folder: str, added: tuple[str, ...], name: str) -> Defined | None:
        """A name in folders that a script adds to ``sys.path``, relative to its own folder or one above it."""
        known = self._resolved[f"{folder}:{':'.join(added)}"]
        if name not in known:
            known[name] = None
            below = (self._below(f"{one.rstrip('/')}/{more}", name, package=False) for more in added for one in self._around(folder))
            found = next((one for one in below if one is not None), None)
            known[name] = found and self._defining(found)
        return known[name]

    def _around(self, folder: str) -> Iterator[str]:
        """A folder of the project and those around it, up to the root."""
        while folder.startswith(self._root) and folder != self._root:
            yield folder
            folder = posixpath.dirname(folder)
        yield self._root

    def _above(self, folder: str, level: int) -> Iterator[str]:
        for _ in range(level - 1):
            folder = posixpath.dirname(folder)
        yield folder

    def _upwards(self, folder: str, head: str) -> tuple[str, ...]:
        """The folders in which an absolute import of a file in this one is looked up, and which hold its first name."""
        key = (folder, head)
        if key not in self._folders:
            found = [*self._around(folder), posixpath.join(self._root, "src")]
            self._folders[key] = tuple(one for one in found if f"{one.rstrip('/')}/{head}" in self._entries)
        return self._folders[key]

    def _below(self, folder: str, name: str, *, package: bool) -> Defined | None:
        """The file of a module below a folder; for a relative import also the folder's own ``__init__.py``."""
        base = folder.rstrip("/")
        parts = name.split(".") if name else []
        if parts and f"{base}/{parts[0]}" in self._entries:
            for end in range(len(parts), 0, -1):
                module = "/".join((base, *parts[:end]))
                for path in (f"{module}.py", f"{module}/__init__.py"):
                    if path in self._files:
                        return path, ".".join(parts[end:])
        own = f"{base}/__init__.py"
        return (own, name) if package and own in self._files else None

    def _defining(self, place: Defined) -> Defined:
        path, name = place
        first = name.partition(".")[0]
        if first in ("", "*") or first in self._skim(path).defined:
            return place
        for imported in self._imports_of(path).get(first, ()):
            if (found := self.resolve(path, imported)) and found[0] != path:
                return found[0], found[1] + name[len(first) :]
        return self._behind_star(path, name) or place

    def _imports_of(self, path: str) -> Mapping[str, tuple[str, ...]]:
        """The imports of a file, by the last name; cached for the few files from which others import names."""
        if path not in self._by_name:
            self._by_name[path] = _by_last_name(self._skim(path).imports)
        return self._by_name[path]

    def _behind_star(self, path: str, name: str) -> Defined | None:
        """The definition of a name that a file may get through ``from module import *``."""
        for imported in self._imports_of(path).get("*", ()):
            module = self.resolve(path, imported.removesuffix("*").rstrip(".") or imported.removesuffix("*"))
            if module is None or module[1] or module[0] == path:
                continue
            found = self.resolve(path, imported.removesuffix("*") + name)
            if found and name.partition(".")[0] in self._skim(found[0]).defined:
                return found
        return None

    def importing(self, path: str, name: str) -> FileSet:
        """The files that import a name of another one, or may do so with ``*``."""
        return FileSet(self._universe, self._importing.get((path, name), 0) | self._importing.get(_ANYTHING, 0))

    @cached_property
    def _importing(self) -> dict[Defined, int]:
        """The files, as bits, that import a name under this very name."""
        found: dict[Defined, int] = {}
        for number, importer in enumerate(self._universe.paths):
            for last, imported in _by_last_name(self._skim(importer).imports).items():
                names = {self.resolve(importer, one) for one in imported} if last != "*" else {_ANYTHING}
                for one in names:
                    if one is not None and (one == _ANYTHING or one[1] == last):
                        found[one] = found.get(one, 0) | 1 << number
        return found

    def imports_modules(self, path: str) -> bool:
        """Whether a file may import a whole module of the project, or a package."""
        if path not in self._modules:
            self._modules[path] = any(self._may_be_module(path, one) for one in self._skim(path).bound)
        return self._modules[path]

    def _may_be_module(self, path: str, name: str) -> bool:
        found = self.resolve(path, name)
        if found is None:
            return name.startswith(".") or name.partition(".")[0] in self._heads
        where, inside = found
        return not inside or (where.endswith("/__init__.py") and inside.partition(".")[0] not in self._skim(where).defined)

    def imported_by(self, path: str) -> FileSet:
        """The project files that a file imports directly."""
        if path not in self._imported:
            found = (self.resolve(path, name) for name in self._skim(path).imports)
            self._imported[path] = self._universe.of({target[0] for target in found if target is not None} - {path})
        return self._imported[path]

    def reach(self, path: str) -> FileSet | frozenset[str]:
        """A file and every project file that it imports, directly or through others."""
        number = self._universe.numbers.get(path)
        return frozenset({path}) if number is None else self._closures[0][number]

    def importers(self, path: str) -> FileSet:
        """The files from which a file is reached by imports, including itself; empty for other than Python files."""
        number = self._universe.numbers.get(path)
        return self._universe.of(()) if number is None else self._closures[1][number]

    @cached_property
    def _closures(self) -> tuple[list[FileSet], list[FileSet]]:
        """For each file the files it reaches and those that reach it; files with cyclic imports share one set."""
        numbers, paths = self._universe.numbers, self._universe.paths
        edges = [[numbers[one] for one in self.imported_by(path)] for path in paths]
        groups = components(edges)
        group_of = {one: number for number, group in enumerate(groups) for one in group}
        below = [{group_of[target] for one in group for target in edges[one]} - {number} for number, group in enumerate(groups)]
        down = [sum(1 << one for one in group) for group in groups]
        up = list(down)
        # A group is behind every group that it imports.
        for number in range(len(groups)):
            for target in below[number]:
                down[number] |= down[target]
        for number in reversed(range(len(groups))):
            for target in below[number]:
                up[target] |= up[number]
        sets = [[FileSet(self._universe, bits) for bits in side] for side in (down, up)]
        return [sets[0][group_of[one]] for one in range(len(paths))], [sets[1][group_of[one]] for one in range(len(paths))]


def _by_last_name(imports: Iterable[str]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for imported in imports:
        last = sys.intern(imported.rpartition(".")[2])
        found[last] = (*found.get(last, ()), imported)
    return found
