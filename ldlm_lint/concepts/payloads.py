"""What a written file holds: tensors and plain values alone, so that every version of torch loads it, or something that
this cannot be said of.

    torch.save({"model": model.state_dict(), "epoch": epoch, "best": float(accuracy)}, path)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ldlm_lint.concepts.written_states import FILLS, WrittenStates
from ldlm_lint.program.atoms import DEVICE, HOST_TENSOR, MASK, TENSOR, Value
from ldlm_lint.program.calls import UNKNOWN

if TYPE_CHECKING:
    from ldlm_lint.code.table import Node
    from ldlm_lint.program import Program
    from ldlm_lint.program.modules import Module

_WRITTEN = ("obj", "tensors")
_MADE_PLAIN = frozenset({"int", "float", "str", "len", "bool", "range", "format"})
"""Functions of Python that give a number or a text, or several of them, whatever they are given; ``round`` and ``abs`` of a
number of numpy give one of numpy."""
_PLAIN_METHODS = frozenset({"item", "tolist", "format", "strftime", "hexdigest"})
_CLOCKS = frozenset({"time.time", "time.strftime"})
_COPIES = frozenset({"dict", "list", "tuple", "OrderedDict", "deepcopy", "copy", "sorted", "sum", "max", "min", "round", "abs"})
_SAME = frozenset({"cpu", "detach", "clone", "to", "half", "float", "contiguous", "items", "values", "keys", "copy", "sum", "max", "min"})
"""Methods of tensors and containers that give the same in another form."""
_RANDOM_STATES = frozenset({"torch.get_rng_state", "torch.random.get_rng_state", "torch.cuda.get_rng_state", "torch.cuda.get_rng_state_all"})
_OF_TORCH = ("torch.nn.", "torch.optim.", "torch.amp.", "torch.cuda.amp.")
"""Where the classes come from whose state is made of tensors, numbers and texts; that of a sharded module is not."""
_LOADS = frozenset({"torch.load", "torch.serialization.load", "torch.hub.load", "torch.hub.load_state_dict_from_url"})
_TENSORS = frozenset({DEVICE, HOST_TENSOR, TENSOR})
_WHOLE_ENGINES = frozenset({"save_checkpoint"})
"""Methods that write what they are given together with objects of their own."""
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
        if module.last_name(row[1]) in _WHOLE_ENGINES:
            return False
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
        if kind in ("const", "fstr", "not"):
            return True
        if kind == "call":
            return self._is_made(module, key, row, seen)
        if kind in ("param", "free"):
            return self._are_plain(self._handed(module, row), seen)
        if kind in ("map", "seq"):
            return all(self._is_plain(module.base | one, seen) for one in (*row[2], *self._states.filled(module, key & MASK)))
        if kind == "attr":
            return self._are_plain(self._stored(module, row), seen)
        if kind == "part" and self._is_count(module, row):
            return True
        return self._are_plain((module.base | one for one in _held(row)), seen)

    def _handed(self, module: Module, row: Node) -> list[int]:
        """All that a name may stand for: what each caller passes, or what the module binds; nothing if not all is known."""
        if row[0] == "free":
            return [module.base | one for one in module.scopes[0].bindings.get(row[2], ())]
        function, default = module.base | row[1], module.scopes[row[1]].defaults.get(row[2])
        given: list[int] = []
        for edge in self.program.callers(function):
            node = None if edge.how == UNKNOWN else self.program.argument_node(edge.call, function, edge.how, row[2])
            if node is None and (edge.how == UNKNOWN or not default):
                return []
            given.append(module.base | default if node is None and default else node or 0)
        return given

    def _is_count(self, module: Module, row: Node) -> bool:
        """``for epoch, batch in enumerate(loader)``"""
        element = module.plain(row[1])
        made = module.plain(element[1]) if element[0] == "elem" else ("",)
        return row[2] == 0 and made[0] == "call" and module.nodes[made[1]][0] == "free" and module.last_name(made[1]) == "enumerate"

    def _are_plain(self, keys: Iterable[int], seen: set[int]) -> bool:
        """Whether all of at least one expressions are."""
        found = list(keys)
        return bool(found) and all(self._is_plain(one, seen) for one in found)

    def _stored(self, module: Module, row: Node) -> list[int]:
        """The values that the class of an object stores under an attribute, and puts into what is stored there."""
        owner = self.program.class_of_self(module, row[1])
        classes = self.program.order(owner) if owner is not None else ()
        stored = [value for one in classes for value in self.program.own_writes.get((one, row[2]), ())]
        elsewhere = [value for _, value in self.program.other_writes.get(row[2], ())]
        return [*stored, *elsewhere, *(value for one in classes for value in self._put_into(one, row[2]))] if stored else []

    def _put_into(self, owner: int, name: str) -> Iterator[int]:
        """The values that the methods of a class put into an attribute: ``self.losses.append(loss)``."""
        module = self.program.module_of(owner)
        for call in (one for method in FILLS for one in module.table.named.get(method, ())):
            row = module.nodes[call]
            function = module.nodes[row[1]]
            held = module.nodes[function[1]] if function[0] == "attr" else ("",)
            if held[0] == "attr" and held[2] == name and self.program.class_of_self(module, held[1]) == owner:
                yield from (module.base | one for one in row[2])

    def _is_tensor(self, value: Value) -> bool:
        return bool(value) and value <= _TENSORS

    def _is_made(self, module: Module, call: int, row: Node, seen: set[int]) -> bool:
        targets = sorted(self.program.targets_of.get(call, ()))
        name, function = module.last_name(row[1]), module.nodes[row[1]]
        if targets:
            return all(map(self._returns, targets)) and self._are_plain((one for target in targets for one in self._returned(target)), seen)
        names = {fields[1] for fields in self.program.atoms.kinds(self.program.ask(module.base | row[1]), "x")}
        is_method = function[0] == "attr" and not names
        if names and names <= _RANDOM_STATES | _CLOCKS:
            return True
        if is_method and name == "state_dict":
            return self._is_of_torch(module.base | function[1], set())
        if name in (_PLAIN_METHODS if is_method else _MADE_PLAIN):
            return True
        if is_method:
            return self._is_tensor(self.program.ask(call)) or (name in _SAME and self._is_plain(module.base | function[1], seen))
        parts = [*row[2], *(value for _, value in row[3])]
        if name in _COPIES:
            return not parts or self._are_plain((module.base | one for one in parts), seen)
        return bool(names) and names.isdisjoint(_LOADS) and all(one.startswith("torch.") for one in names) and self._is_tensor(self.program.ask(call))

    def _is_of_torch(self, key: int, seen: set[int]) -> bool:
        """Whether an object can only be a module or an optimizer of torch, whose state is its own: what prepares, shards or
        wraps one for another package gives the state that this package likes."""
        if key in seen or len(seen) > _MOST:
            return key in seen
        seen.add(key)
        module = self.program.module_of(key)
        row, owner = module.nodes[key & MASK], self.program.class_of_self(module, key & MASK)
        if owner is not None:
            return self._keeps_tensors(owner)
        if row[0] == "part" and self._comes_from_outside(module, row[1]):
            return False
        sources = self._sources(module, key, row)
        return all(self._is_of_torch(one, seen) for one in sources) if sources else row[0] != "param" and self._is_made_by_torch(self.program.ask(key))

    def _comes_from_outside(self, module: Module, number: int) -> bool:
        """``net, optimizer = accelerator.prepare(net, optimizer)``"""
        call = module.base | number
        if module.nodes[number][0] != "call":
            return False
        return not self.program.targets_of.get(call)

    def _sources(self, module: Module, key: int, row: Node) -> list[int]:
        """The expressions of which one is the object."""
        if row[0] in ("param", "free"):
            return self._handed(module, row)
        if row[0] == "attr":
            return self._stored(module, row)
        if row[0] == "call":
            return [one for target in sorted(self.program.targets_of.get(key, ())) for one in self._returned(target)]
        return [module.base | one for one in _held(row)] if row[0] in ("phi", "copy", "choice") else []

    def _is_made_by_torch(self, value: Value) -> bool:
        atoms = self.program.atoms
        owners = [fields[1] for kind in ("i", "self") for fields in atoms.kinds(value, kind)]
        made = [fields[1] for fields in atoms.kinds(value, "o")]
        known = len(owners) + len(made) == len(value) and bool(value)
        return known and all(map(self._keeps_tensors, owners)) and all(one.startswith(_OF_TORCH) for one in made)

    def _keeps_tensors(self, owner: int) -> bool:
        """Whether the state of an object of a class of the project is made of tensors and plain values: that of a module is; an
        optimizer keeps whatever its constructor puts into the groups, functions as well."""
        outside = self.program.outside_of(owner)
        return bool(outside) and all(one.startswith("torch.nn.") for one in outside) and not self.program.methods(owner, "get_extra_state")

    def _returns(self, function: int) -> bool:
        return bool(self._returned(function))

    def _returned(self, function: int) -> list[int]:
        module = self.program.module_of(function)
        return [module.base | value for value, _ in module.scopes[function & MASK].returns if value]


def _held(row: Node) -> list[int]:
    """The expressions that a value consists of, or of which it is one; empty for an unknown one."""
    kind = row[0]
    if kind == "phi":
        return list(row[1])
    if kind == "upd":
        return [row[1], row[3]]
    if kind in ("dcomp", "choice"):
        return list(row[2:4])
    if kind in ("op", "un"):
        return list(row[2:])
    if kind == "cmp":
        return [row[2], *row[3]]
    if kind == "bool":
        return list(row[2])
    return [row[1]] if kind in ("copy", "comp", "part", "elem", "item", "star") else []


__all__ = ["Payloads"]
