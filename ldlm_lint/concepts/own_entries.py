"""Recognises a file of the project by its entries: a load takes out of it what a call of the project puts in, for a model
of the same class, or in the same class.

    torch.save({"model": model.state_dict(), "options": options}, f"{folder}/{step}.pt")
    model.load_state_dict(torch.load(options.weights)["model"])

A path that a user gives hides which file it is; one entry called ``model`` alone says nothing, for published files have it,
too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ldlm_lint.concepts.payloads import Payloads
from ldlm_lint.program.atoms import MASK, Value
from ldlm_lint.program.handles import expression

if TYPE_CHECKING:
    from ldlm_lint.code.table import Node
    from ldlm_lint.program.codebase import Codebase
    from ldlm_lint.program.modules import Module

_WRITTEN = ("obj", "tensors")
_TAKES = frozenset({"get", "pop"})
"""Methods of a dictionary that give one of its entries."""
_STATE, _RESTORE = "state_dict", "load_state_dict"
_OBJECTS = frozenset({"argparse.Namespace", "types.SimpleNamespace"})
"""Classes of Python that torch does not allow in a file read with ``weights_only=True``."""
Entries = dict[str, list[int]]
"""The values of entries, or the expressions that take them (keys), by name."""


class OwnEntries:
    """Answers for the loads of a program, given the calls (keys) that write files."""

    def __init__(self, code: Codebase, written: Iterable[int]) -> None:
        self._code = code
        self.program = code.program
        self._files = {call: self._entries(self._object_of(call)) for call in written}

    def alike(self, load: int) -> list[int]:
        """The calls (keys) that write all the entries that a load (key) takes out of a file; none if it takes none."""
        taken = self._taken(load)
        return [call for call, entries in self._files.items() if taken and taken.keys() <= entries.keys()]

    def of_its_class(self, load: int) -> list[int]:
        """Those of them that are in the class in which the load is."""
        owner = self._class_around(load)
        return [call for call in self.alike(load) if owner and self._class_around(call) == owner]

    def of_its_models(self, load: int) -> list[int]:
        """Those of them whose file has the state of a model of the class that the load restores from the same entry."""
        taken = self._taken(load)
        restored = {name: list(self._restored(self.program.module_of(load), taken[name])) for name in taken}
        return [call for call in self.alike(load) if any(self._are_of_one_class(restored[name], self._files[call][name]) for name in taken)]

    def objects_in(self, call: int) -> tuple[str, ...]:
        """The entries that a call (key) writes which are objects: torch refuses to read them with ``weights_only=True``."""
        return tuple(sorted(name for name, values in self._files[call].items() if any(map(self._is_object, values))))

    def _taken(self, load: int) -> Entries:
        """The entries that the module of a load takes out of the file by name."""
        module, number = self.program.module_of(load), load & MASK
        found: Entries = {}
        for at, row in enumerate(module.nodes):
            held, key = _place(module, row)
            if held and _may_be(module, held, number) and (name := _text(module, key)):
                found.setdefault(name, []).append(module.base | at)
        return found

    def _restored(self, module: Module, taken: Iterable[int]) -> Iterator[Value]:
        """The objects that get entries of a file: ``model.load_state_dict(file["model"])``."""
        wanted = {one & MASK for one in taken}
        for call in module.table.named.get(_RESTORE, ()):
            function, given = module.nodes[module.nodes[call][1]], module.nodes[call][2]
            if function[0] == "attr" and given and module.uncopied(given[0]) in wanted:
                yield self.program.ask(module.base | function[1])

    def _are_of_one_class(self, restored: Iterable[Value], written: Iterable[int]) -> bool:
        saved = {owner for value in written for owner in self._classes_of_state(value)}
        return any(not saved.isdisjoint(self._classes(value)) for value in restored)

    def _classes_of_state(self, key: int) -> set[int]:
        """The classes of the object whose ``state_dict()`` an expression is."""
        module = self.program.module_of(key)
        row = module.nodes[module.uncopied(key & MASK)]
        function = module.nodes[row[1]] if row[0] == "call" else ("",)
        return self._classes(self.program.ask(module.base | function[1])) if function[0] == "attr" and function[2] == _STATE else set()

    def _classes(self, value: Value) -> set[int]:
        return {int(fields[1]) for kind in ("i", "self") for fields in self.program.atoms.kinds(value, kind)}

    def _class_around(self, call: int) -> int:
        """The class (key) in whose method a call is; 0 outside of classes."""
        module = self.program.module_of(call)
        at = module.table.sites[call & MASK].scope
        while at > 0 and module.scopes[at].kind != "class":
            at = module.scopes[at].parent
        return module.base | at if at > 0 else 0

    def _object_of(self, call: int) -> int:
        """What a call writes, as a key; 0 if it is not seen."""
        module = self.program.module_of(call)
        row = module.nodes[call & MASK]
        first = row[2][0] if row[2] else next((value for name, value in row[3] if name in _WRITTEN), 0)
        return module.base | first if first else 0

    def _entries(self, start: int) -> Entries:
        """The values of a dictionary by name: as written, stored or updated later, or passed by a caller."""
        found: Entries = {}
        todo, seen = [start] if start else [], {start}
        while todo:
            key = todo.pop()
            module = self.program.module_of(key)
            for name, value in _pairs(module, module.nodes[key & MASK]):
                found.setdefault(name, []).append(module.base | value)
            fresh = [one for one in self._further(module, key & MASK) if one not in seen]
            seen.update(fresh)
            todo += fresh
        return found

    def _further(self, module: Module, number: int) -> list[int]:
        """The expressions (keys) that a dictionary is, or from which it takes entries."""
        row = module.nodes[number]
        if row[0] in ("param", "free"):
            return self.program.given_or_bound(module, row)
        inner = row[1] if row[0] == "phi" else row[1:2] if row[0] in ("upd", "copy") else ()
        filled = self._code[Payloads].filled(expression(self._code, module.base | number)) if row[0] == "map" else []
        return [*(module.base | one for one in inner), *(one.key for one in filled)]

    def _is_object(self, key: int) -> bool:
        """Whether a value can only be options, as a parser gives them, or an object of a class of the project."""
        module, value = self.program.module_of(key), self.program.ask(key)
        number = module.uncopied(key & MASK)
        made = {fields[1] for fields in self.program.atoms.kinds(value, "o")}
        if made and made <= _OBJECTS and len(self.program.atoms.kinds(value, "o")) == len(value):
            return True
        if module.nodes[number][0] == "phi" or (module.nodes[number][0] == "call" and not self._is_of_the_project(module.base | number)):
            # ``vars(options)``: what a function of another package makes of an object is not known.
            return False
        return bool(value) and len(value) == sum(len(self.program.atoms.kinds(value, kind)) for kind in ("ns", "i"))

    def _is_of_the_project(self, call: int) -> bool:
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


def _may_be(module: Module, number: int, wanted: int) -> bool:
    """Whether a row is another one, or one of several that it may be."""
    number = module.uncopied(number)
    row = module.nodes[number]
    return number == wanted or (row[0] == "phi" and wanted in map(module.uncopied, row[1]))


def _pairs(module: Module, row: Node) -> Iterator[tuple[str, int]]:
    """The entries that a row names: of ``{"model": state}``, ``dict(model=state)`` and ``file["model"] = state``."""
    if row[0] == "call":
        called = module.plain(row[1])
        yield from ((name, value) for name, value in row[3] if name and called[0] == "free" and called[2] == "dict")
    for key, value in zip(row[1], row[2], strict=True) if row[0] == "map" else [row[2:4]] if row[0] == "upd" else ():
        if name := _text(module, key):
            yield name, value


def _text(module: Module, number: int) -> str:
    row = module.nodes[number]
    return row[1] if row[0] == "const" and isinstance(row[1], str) else ""


__all__ = ["OwnEntries"]
