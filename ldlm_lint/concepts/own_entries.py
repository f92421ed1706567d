"""Recognises a file of the project by its entries: a load takes out of it what a call of the project puts in.

    torch.save({"model": model.state_dict(), "options": options}, f"{folder}/{step}.pt")
    model.load_state_dict(torch.load(options.weights)["model"])

A path that a user gives hides which file it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ldlm_lint.concepts.handed import behind
from ldlm_lint.program.atoms import MASK

if TYPE_CHECKING:
    from ldlm_lint.code.table import Node
    from ldlm_lint.program import Program
    from ldlm_lint.program.modules import Module

_WRITTEN = ("obj", "tensors")
_TAKES = frozenset({"get", "pop"})
"""Methods of a dictionary that give one of its entries."""


class OwnEntries:
    """Answers for the loads of a program, given the calls (keys) that write files."""

    def __init__(self, program: Program, written: Iterable[int]) -> None:
        self.program = program
        self._files = {call: self._entries(self._object_of(call)) for call in written}

    def alike(self, load: int) -> list[int]:
        """The calls (keys) that write all the entries that a load (key) takes out of a file; none if it takes none."""
        taken = self._taken(load)
        return [call for call, entries in self._files.items() if taken and taken <= entries.keys()]

    def objects_in(self, call: int) -> tuple[str, ...]:
        """The entries that a call (key) writes which are objects: torch refuses to read them with ``weights_only=True``."""
        return tuple(sorted(name for name, values in self._files[call].items() if any(map(self._is_object, values))))

    def _taken(self, load: int) -> set[str]:
        """The entries that the scope of a load takes out of the file by name."""
        module, number = self.program.module_of(load), load & MASK
        names = set()
        for row in module.nodes:
            held, key = _place(module, row)
            if held and module.uncopied(held) == number and module.nodes[key][0] == "const" and isinstance(module.nodes[key][1], str):
                names.add(module.nodes[key][1])
        return names

    def _object_of(self, call: int) -> int:
        """What a call writes, as a key; 0 if it is not seen."""
        module = self.program.module_of(call)
        row = module.nodes[call & MASK]
        first = row[2][0] if row[2] else next((value for name, value in row[3] if name in _WRITTEN), 0)
        return module.base | first if first else 0

    def _entries(self, start: int) -> dict[str, list[int]]:
        """The values (keys) of a dictionary by name: as written, stored later, or passed by a caller."""
        found: dict[str, list[int]] = {}
        todo, seen = [start] if start else [], {start}
        while todo:
            key = todo.pop()
            module = self.program.module_of(key)
            row = module.nodes[key & MASK]
            pairs: list[tuple[int, int]] = list(zip(row[1], row[2], strict=True)) if row[0] == "map" else [row[2:4]] if row[0] == "upd" else []
            for name, value in pairs:
                if module.nodes[name][0] == "const" and isinstance(module.nodes[name][1], str):
                    found.setdefault(module.nodes[name][1], []).append(module.base | value)
            inner = row[1] if row[0] == "phi" else row[1:2] if row[0] in ("upd", "copy") else ()
            further = behind(self.program, module, row) if row[0] in ("param", "free") else [module.base | one for one in inner]
            fresh = [one for one in further if one not in seen]
            seen.update(fresh)
            todo += fresh
        return found

    def _is_object(self, key: int) -> bool:
        """Whether a value can only be what a parser of options gave, or an object of a class of the project."""
        module, value = self.program.module_of(key), self.program.ask(key)
        number = module.uncopied(key & MASK)
        if module.nodes[number][0] == "phi" or (module.nodes[number][0] == "call" and not self._is_of_the_project(module.base | number)):
            # ``vars(options)``: what a function of another package makes of an object is not known.
            return False
        return bool(value) and len(value) == sum(len(self.program.atoms.kinds(value, kind)) for kind in ("ns", "i"))

    def _is_of_the_project(self, call: int) -> bool:
        self.program.ask(("to", call))
        return bool(self.program.targets_of.get(call))


def _place(module: Module, row: Node) -> tuple[int, int]:
    """The container and the key of ``file["model"]`` and ``file.get("model")``; twice 0 for another row."""
    if row[0] == "item":
        return row[1], row[2]
    if row[0] == "call" and row[2]:
        function = module.nodes[row[1]]
        if function[0] == "attr" and function[2] in _TAKES:
            return function[1], row[2][0]
    return 0, 0


__all__ = ["OwnEntries"]
