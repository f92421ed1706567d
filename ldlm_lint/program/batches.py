"""Entries of batches: mappings that a loader or a framework gives, and that the program puts more into."""

from __future__ import annotations

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TypeAlias

from ldlm_lint.program.atoms import FIRST, MASK, NOTHING, Value
from ldlm_lint.program.classes import Classes
from ldlm_lint.program.modules import Module

Arguments: TypeAlias = Callable[[], list[Value]]
"""Asks for the values of the positional arguments of a call."""


class Batches(Classes):
    """The entries of batches: a batch is a "tensor" of which only the device is known."""

    @abstractmethod
    def callvalue(
        self, functions: Value, call: int | None, how: int | None = None, args: Arguments | None = None, depth: int = 0
    ) -> Value:
        """The result of calling a value."""

    def entry(self, homes: Value, key: object) -> Value:
        """The value under a key of a batch with these devices: the program's own value, else a tensor like its
        others.
        """
        if not homes or key.__class__ is not str or not (key in self._puts or "collate_fn" in self.given):
            return homes
        put = self.get(("entries", key))
        if self.tensor_part(put):
            # The initial number does not determine the later values.
            put -= frozenset(one for one in put if one >= FIRST and self.atoms.of[one][0] == "k")
        return put or homes

    def entries(self, key: str) -> Value:
        """Question ``("entries", key)``: the values that the program stores in batches under a name, one cell for all
        batches."""
        value = self._collated(key)
        for batch, given in self._puts.get(key, ()):
            if self.tensor_part(self.get(batch)):
                value |= self.get(given)
        return value

    def _collated(self, key: str) -> Value:
        """Values that collate functions keep unchanged (a list, a text); a tensor is on the device of its batch."""
        value = NOTHING
        for _, source in self.given.get("collate_fn", ()):
            for one in self.callvalue(self.get(source), None):
                fields = self.atoms.of[one] if one >= FIRST else ("",)
                held = self.get(("content", fields[1], key)) if fields[0] == "d" else NOTHING
                value |= NOTHING if self.tensor_part(held) else held
        return value

    @cached_property
    def _puts(self) -> dict[str, list[tuple[int, int]]]:
        """The stores under a name: the receiver and the value, by the name."""
        puts: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for module in self.live:
            for receiver, key, value in _written(module):
                puts[key].append((module.base | receiver, module.base | value))
        return puts


def _written(module: Module) -> Iterator[tuple[int, str, int]]:
    """``batch["name"] = value`` and ``batch.update({"name": value}, name=value)`` of a module."""
    nodes = module.nodes
    for update in module.table.updates:
        _, receiver, key, value = nodes[update]
        if nodes[key][0] == "const" and isinstance(nodes[key][1], str):
            yield receiver, nodes[key][1], value
    for call in module.table.named.get("update", ()):
        _, function, args, keywords = nodes[call & MASK][:4]
        if nodes[function][0] != "attr":
            continue
        receiver = nodes[function][1]
        yield from ((receiver, name, value) for name, value in keywords if name)
        for given in args:
            if nodes[given][0] == "map":
                for key, value in zip(nodes[given][1], nodes[given][2], strict=True):
                    if key and nodes[key][0] == "const" and isinstance(nodes[key][1], str):
                        yield receiver, nodes[key][1], value
