"""What a module takes from others: the modules that define the names it imports, skipping those that only re-export
them.

An ``__init__.py`` that only re-exports runs a whole library for one class. Its imports are followed for the requested
name only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ldlm_lint.program.modules import Module, Modules

Import = tuple[str, str, int]
"""Module, name or "" for the module itself, and level of an import."""


class Uses:
    """The modules that others take from, and those that re-export in between."""

    def __init__(self, modules: Modules) -> None:
        self._modules = modules
        self._handed: dict[int, dict[str, list[Import]]] = {}

    def of(self, module: Module) -> set[int]:
        """The modules whose names a module takes, and those that re-export them; of a re-exporting module those that
        register something."""
        if self._handed_by(module):
            linked = map(self._modules.all.__getitem__, self._modules.linked(module))
            return {one.index for one in linked if one.shown.registers or self._handed_by(one)}
        found: set[int] = set()
        for name, imported, level, _ in module.shown.imports:
            found.update(self._taken(module, (name, imported, level)))
        found.discard(module.index)
        return found

    def _taken(self, module: Module, taken: Import) -> Iterator[int]:
        """The modules that an import of a module leads to."""
        seen: set[tuple[int, str]] = set()
        todo = list(self._steps(module, taken, module))
        while todo:
            target, name = todo.pop()
            if (target.index, name) in seen:
                continue
            seen.add((target.index, name))
            yield from self._packages(target)
            handed = self._handed_by(target)
            for path, imported, number in self._asked(handed, name):
                # A star import keeps the requested name.
                todo += self._steps(target, (path, name if imported == "*" else imported, number), module)

    def _steps(self, module: Module, taken: Import, user: Module) -> Iterator[tuple[Module, str]]:
        """The requested names of an import; for an imported module the attributes that its user reads from any
        object.
        """
        name, imported, level = taken
        modules = self._modules
        full = modules.absolute(module, name, level)
        target = modules.find(full, module) if full else None
        inner = modules.inner(module, full, imported, level, target) if imported and imported != "*" else None
        if inner is not None:
            yield from ((inner, one) for one in self._read(inner, user))
        if target is None or target is module:
            return
        if imported in ("", "*"):
            yield from ((target, one) for one in (self._read(target, user) if not imported else ("*",)))
        else:
            yield target, imported

    def _read(self, target: Module, user: Module) -> Iterable[str]:
        handed = self._handed_by(target)
        if not handed:
            return ("*",)
        read = {row[2] for row in user.nodes if row[0] == "attr"}
        return sorted(read & handed.keys()) or ("",)

    @staticmethod
    def _asked(handed: dict[str, list[Import]], name: str) -> list[Import]:
        if name == "*":
            return [one for some in handed.values() for one in some]
        # A name without an import may come from a star import.
        return handed.get(name) or handed.get("*", [])

    def _handed_by(self, module: Module) -> dict[str, list[Import]]:
        """The imports of a re-exporting module, by the names that they bind; empty for any other."""
        known = self._handed.get(module.index)
        if known is None:
            known = self._handed[module.index] = _handed_on(module) if module.path.endswith("__init__.py") else {}
        return known

    def _packages(self, module: Module) -> Iterator[int]:
        yield module.index
        name = module.name
        while "." in name:
            name = name.rpartition(".")[0]
            package = self._modules.by_name.get(name)
            if package is not None:
                yield package.index


def _handed_on(module: Module) -> dict[str, list[Import]]:
    if len(module.scopes) != 1:
        # Nothing is imported from tests.
        return {}
    handed: dict[str, list[Import]] = {}
    for name, bound in module.scopes[0].bindings.items():
        rows = [module.nodes[one] for one in bound]
        found = [(row[1], row[2], row[3]) for row in rows if row[0] == "impf"]
        found += [(row[1], "" if name != "*" else "*", row[2]) for row in rows if row[0] == "imp"]
        if found:
            handed[name] = found
    return handed
