"""What a written file holds: tensors and plain values alone, so that every version of torch loads it, or something that
this cannot be said of.

    torch.save({"model": model.state_dict(), "epoch": epoch, "best": float(accuracy)}, path)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ldlm_lint.concepts.handed import behind
from ldlm_lint.concepts.written_states import FILLS, WrittenStates
from ldlm_lint.program.atoms import BOOLEAN, FALSE, FIRST, HOMES, MASK, NONE, TRUE, Value

if TYPE_CHECKING:
    from ldlm_lint.code.table import Node
    from ldlm_lint.program import Program
    from ldlm_lint.program.modules import Module

_WRITTEN = ("obj", "tensors")
_PLAIN = frozenset({"int", "float", "str", "len", "bool", "round", "abs", "range", "item", "tolist", "format", "time", "strftime", "hexdigest"})
"""Functions and methods that give numbers, texts or lists of them, whatever they are given."""
_COPIES = frozenset({"dict", "list", "tuple", "OrderedDict", "deepcopy", "copy", "sorted", "sum", "max", "min"})
_SAME = frozenset({"cpu", "detach", "clone", "to", "half", "float", "contiguous", "items", "values"})
"""Methods of tensors and containers that give the same in another form."""
_STATES = frozenset({"state_dict", "get_rng_state", "get_rng_state_all"})
"""What gives the state of a module or an optimizer, or that of torch's generators: tensors, numbers and texts."""
_VALUES = HOMES | {BOOLEAN, TRUE, FALSE, NONE}
_MOST = 200
"""Expressions of one object that are looked at."""


class Payloads:
    """Answers for calls that write an object, their first argument."""

    def __init__(self, program: Program, states: WrittenStates) -> None:
        self.program = program
        self._states = states

    def are_tensors_only(self, call: int) -> bool:
        """Whether an object is known to be made of tensors, numbers, texts and containers of these."""
        module = self.program.module_of(call)
        row = module.nodes[call & MASK]
        first = row[2][0] if row[2] else next((value for name, value in row[3] if name in _WRITTEN), 0)
        return bool(first) and self._is_plain(module.base | first, set())

    def _is_plain(self, key: int, seen: set[int]) -> bool:
        if key in seen:
            # A value that a loop changes is what it begins as, and what the loop makes of it.
            return True
        if len(seen) > _MOST:
            return False
        seen.add(key)
        module = self.program.module_of(key)
        row = module.nodes[key & MASK]
        kind = row[0]
        if kind in ("const", "fstr", "cmp") or self._is_value(self.program.ask(key)):
            return True
        if kind == "call":
            return self._is_made(module, key, row, seen)
        if kind == "op" and any(_is_number(module.nodes[one]) for one in row[2:4]):
            # ``state["steps"] + 1``
            return True
        if kind in ("param", "free"):
            return self._are_plain(behind(self.program, module, row), seen)
        if kind in ("map", "seq"):
            return all(self._is_plain(module.base | one, seen) for one in (*row[2], *self._states.filled(module, key & MASK)))
        if kind == "attr":
            return self._are_plain(self._stored(module, row), seen)
        return self._are_plain((module.base | one for one in _held(row)), seen)

    def _are_plain(self, keys: Iterable[int], seen: set[int]) -> bool:
        """Whether all of at least one expressions are."""
        found = list(keys)
        return bool(found) and all(self._is_plain(one, seen) for one in found)

    def _stored(self, module: Module, row: Node) -> list[int]:
        """The values that the class of an object stores under an attribute, and puts into what is stored there."""
        owner = self.program.class_of_self(module, row[1])
        classes = self.program.order(owner) if owner is not None else ()
        stored = [value for one in classes for value in self.program.own_writes.get((one, row[2]), ())]
        return stored + [value for one in classes for value in self._put_into(one, row[2])]

    def _put_into(self, owner: int, name: str) -> Iterator[int]:
        """The values that the methods of a class put into an attribute: ``self.losses.append(loss)``."""
        module = self.program.module_of(owner)
        for call in (one for method in FILLS for one in module.table.named.get(method, ())):
            row = module.nodes[call]
            function = module.nodes[row[1]]
            held = module.nodes[function[1]] if function[0] == "attr" else ("",)
            if held[0] == "attr" and held[2] == name and self.program.class_of_self(module, held[1]) == owner:
                yield from (module.base | one for one in row[2])

    def _is_value(self, value: Value) -> bool:
        """Whether a value can only be a tensor, a number or a text."""
        of = self.program.atoms.of
        return bool(value) and all(one in _VALUES or (one >= FIRST and of[one][0] == "k") for one in value)

    def _is_made(self, module: Module, call: int, row: Node, seen: set[int]) -> bool:
        self.program.ask(("to", call))
        targets = sorted(self.program.targets_of.get(call, ()))
        name, function = module.last_name(row[1]), module.nodes[row[1]]
        if targets:
            return all(map(self._returns, targets)) and self._are_plain((one for target in targets for one in self._returned(target)), seen)
        if name in _STATES and function[0] == "attr":
            return self._is_of_torch(module.base | function[1])
        if name in _PLAIN:
            return True
        parts = [*row[2], *(value for _, value in row[3])]
        if name in _COPIES:
            return not parts or self._are_plain((module.base | one for one in parts), seen)
        return function[0] == "attr" and name in _SAME and self._is_plain(module.base | function[1], seen)

    def _is_of_torch(self, key: int) -> bool:
        """Whether an object with a state may be a module or an optimizer; an object of a class of the project that is
        neither gives what it likes."""
        atoms, value = self.program.atoms, self.program.ask(key)
        owners = [fields[1] for kind in ("i", "self") for fields in atoms.kinds(value, kind)]
        return all(self.program.is_module(one) or any(name.startswith("torch.") for name in self.program.outside_of(one)) for one in owners)

    def _returns(self, function: int) -> bool:
        return bool(self._returned(function))

    def _returned(self, function: int) -> list[int]:
        module = self.program.module_of(function)
        return [module.base | value for value, _ in module.scopes[function & MASK].returns if value]


def _is_number(row: Node) -> bool:
    return row[0] == "const" and isinstance(row[1], (int, float))


def _held(row: Node) -> list[int]:
    """The expressions that a value consists of, or of which it is one; empty for an unknown one."""
    kind = row[0]
    if kind == "phi":
        return list(row[1])
    if kind == "upd":
        return [row[1], row[3]]
    if kind in ("dcomp", "choice"):
        return list(row[2:4])
    if kind == "op":
        return list(row[2:4])
    return [row[1]] if kind in ("copy", "comp", "part", "elem", "item", "star") else []


__all__ = ["Payloads"]
