"""Batches that ``pin_memory=True`` cannot pin: torch pins tensors, and those in its own and Python's containers; an object of
another class only by its method ``pin_memory``."""

from __future__ import annotations

from collections.abc import Iterator

from ldlm_lint.program.atoms import FIRST, MASK, Value
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.modules import Module

_CONTAINERS = frozenset({"tuple", "list", "dict", "OrderedDict", "UserDict", "UserList", "Mapping", "MutableMapping", "Sequence", "NamedTuple", "Tensor"})
_ALIKE = frozenset({"tuple", "list", "dict"})
_ORIGINS = {"copy": slice(1, 2), "item": slice(1, 2), "elem": slice(1, 2), "part": slice(1, 2), "choice": slice(2, 4)}


class PinnedBatches(Concept):
    """Answers for the functions that make the batches of a program's loaders."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)


    def are_unpinnable(self, collate: int) -> bool:
        """Whether what a collate function (an expression) gives is, or has in it, an object that torch leaves as it is."""
        return any(self._is_unpinnable(owner) for function in self._functions(self.program.ask(collate)) for owner in self._given(function))

    def _functions(self, value: Value) -> Iterator[int]:
        atoms, program = self.program.atoms, self.program
        for one in sorted(value):
            fields = atoms.of[one] if one >= FIRST else ("",)
            if fields[0] in ("f", "b"):
                yield fields[1]
            elif fields[0] in ("i", "self"):
                yield from program.methods(fields[1], "__call__", exact=fields[0] == "i")
            elif fields[0] == "partial":
                yield from self._functions(program.ask(("unwrapped", fields[1])))

    def _is_unpinnable(self, owner: int) -> bool:
        program = self.program
        if program.methods(owner, "pin_memory"):
            return False
        # A class of another package may bring the method.
        outside = {name for name in program.outside_of(owner) if name not in ("builtins.object", "object", "abc.ABC", "typing.Generic")}
        return not outside and _CONTAINERS.isdisjoint(name.rpartition(".")[2] for name in program.outside_of(owner))

    def _given(self, function: int) -> Iterator[int]:
        """The classes of the project whose objects a function returns, itself or in a container."""
        home = self.program.module_of(function)
        todo = [home.base | value for value, _ in home.scopes[function & MASK].returns if value]
        seen = set(todo)
        while todo:
            key = todo.pop()
            module = self.program.module_of(key)
            row = module.nodes[key & MASK]
            if row[0] == "call":
                yield from (fields[1] for fields in self.program.atoms.kinds(self.program.ask(module.base | row[1]), "c"))
            for one in self._behind(module, key):
                if one not in seen:
                    seen.add(one)
                    todo.append(one)

    def _behind(self, module: Module, key: int) -> list[int]:
        """The origins of a value, and of what is in a container."""
        row = module.nodes[key & MASK]
        if row[0] == "phi":
            behind = list(row[1])
        elif row[0] == "seq":
            behind = list(row[2])
        elif row[0] in ("map", "upd"):
            behind = list(row[2]) if row[0] == "map" else [row[1], row[3]]
        elif row[0] == "comp":
            behind = [row[1]]
        elif row[0] == "call":
            return self._behind_call(module, key)
        else:
            behind = list(row[_ORIGINS.get(row[0], slice(0, 0))])
        return [module.base | one for one in behind]

    def _behind_call(self, module: Module, key: int) -> list[int]:
        row = module.nodes[key & MASK]
        found = [module.base | one for one in row[2]] if module.last_name(row[1]) in _ALIKE else []
        for target in sorted(self.program.targets_of.get(key, ())):
            home = self.program.module_of(target)
            if home.scopes[target & MASK].name != "__init__":
                found += [home.base | value for value, _ in home.scopes[target & MASK].returns if value]
        return found
