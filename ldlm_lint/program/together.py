"""Which modules run in one process: those that a module imports, and the programs that a module takes part in."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable
from functools import cached_property
from typing import TypeVar

from ldlm_lint.program.modules import Module, Modules

T = TypeVar("T", bound=Hashable)

IMPORT_BY_NAME = frozenset({"hydra", "jsonargparse", "mmengine", "mmcv", "pkgutil", "runpy", "detectron2", "stevedore"})
"""Packages that import modules which a configuration or a folder names: what they load is not visible in an import."""


class Together:
    """The imports between modules, read both ways."""

    def __init__(self, modules: Modules, live: Iterable[Module]) -> None:
        self._modules = modules
        self._live = list(live)
        self._programs: dict[int, frozenset[int]] = {}
        self._loaded: dict[int, frozenset[int]] = {}
        self._imported: dict[int, frozenset[int]] = {}

    def programs_of(self, module: Module) -> frozenset[int]:
        """The modules of all programs that a module takes part in: starting modules whose imports lead to it, and
        everything that they import."""
        if module.index not in self._programs:
            self._programs[module.index] = frozenset(closure(self._tops(module), lambda index: self._links.get(index, ())))
        return self._programs[module.index]

    def _tops(self, module: Module) -> set[int]:
        """The modules from which imports lead to a module, and that nothing imports; all of them if they only import each
        other."""
        above = closure({module.index}, lambda index: self._importers.get(index, ()))
        return {one for one in above if not self._importers.get(one)} or above

    def may_share_program(self, one: Module, other: Module) -> bool:
        """Whether a program may load two modules: two scripts that share a helper are two programs."""
        if one.index == other.index or other.index in self.programs_of(one):
            return True
        tops = self._tops(one) | self._tops(other)
        return any({one.index, other.index} <= self.loaded_by(self._modules.all[top]) for top in tops)

    def loaded_by(self, module: Module) -> frozenset[int]:
        """The modules that a program which starts in a module may load; all where names of modules are computed."""
        if module.index not in self._loaded:
            found = self.imported_by(module)
            if any(self._loads_by_name(self._modules.all[index]) for index in found):
                found = frozenset(one.index for one in self._live)
            self._loaded[module.index] = found
        return self._loaded[module.index]

    def imported_by(self, module: Module) -> frozenset[int]:
        """The modules that the imports of a module lead to, with itself; none whose names are computed."""
        if module.index not in self._imported:
            self._imported[module.index] = frozenset(closure({module.index}, lambda index: self._links.get(index, ())))
        return self._imported[module.index]

    def is_imported(self, module: Module) -> bool:
        """Whether a module of the program imports a module by its name."""
        return bool(self._importers.get(module.index))

    @staticmethod
    def _loads_by_name(module: Module) -> bool:
        return module.shown.imports_by_name or any(name.partition(".")[0] in IMPORT_BY_NAME for name, _, _, _ in module.shown.imports)

    @cached_property
    def _links(self) -> dict[int, set[int]]:
        return {one.index: self._modules.linked(one) for one in self._live}

    @cached_property
    def _importers(self) -> dict[int, set[int]]:
        importers: dict[int, set[int]] = {}
        for index, linked in self._links.items():
            for target in linked:
                importers.setdefault(target, set()).add(index)
        return importers


def closure(start: Collection[T], step: Callable[[T], Iterable[T]]) -> set[T]:
    """Some things and all that a step leads to from them."""
    seen = set(start)
    todo = list(start)
    while todo:
        for one in step(todo.pop()):
            if one not in seen:
                seen.add(one)
                todo.append(one)
    return seen
