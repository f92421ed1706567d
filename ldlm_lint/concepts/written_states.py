"""Decides which written objects contain a training's state: ``state_dict()`` or a module is in them, wherever they are
built.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ldlm_lint.program.atoms import MASK

if TYPE_CHECKING:
    from ldlm_lint.code.table import Node
    from ldlm_lint.program import Program
    from ldlm_lint.program.modules import Module

_COPIES = frozenset({"dict", "OrderedDict", "deepcopy", "copy"})
_HANDS_ON = frozenset({"cpu", "detach", "clone", "to", "half", "items", "values", "copy", "contiguous", "requires_grad_"})
"""Methods of tensors, modules and dictionaries that give the same in another form."""
_OF_MODULES = frozenset({"eval", "train"})
"""Methods that only modules have, and that give the module."""
_WRITTEN = ("obj", "tensors", "model")
FILLS = ("append", "extend", "update", "setdefault")
"""Methods that put values into a container."""
_MOST = 60
"""Expressions of one object that are looked at."""


class WrittenStates:
    """Answers for calls that write an object, their first argument."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._fills: dict[int, dict[int, list[int]]] = {}

    def written_by(self, call: int) -> bool:
        """Whether the object written by a call contains a state."""
        module = self.program.module_of(call)
        row = module.nodes[call & MASK]
        first = row[2][0] if row[2] else next((value for name, value in row[3] if name in _WRITTEN), 0)
        return bool(first) and self._is_state(module.base | first, set())

    def _is_state(self, key: int, seen: set[int]) -> bool:
        if key in seen or len(seen) > _MOST:
            return False
        seen.add(key)
        module = self.program.module_of(key)
        row = module.nodes[key & MASK]
        if row[0] == "call":
            return self._is_made(module, key, row, seen)
        if row[0] in ("param", "free"):
            return self._any(self.program.given_or_bound(module, row), seen)
        inner = [*_held(row), *(self.filled(module, key & MASK) if row[0] in ("map", "seq") else ())]
        return self._any((module.base | one for one in inner), seen)

    def _any(self, keys: Iterable[int], seen: set[int]) -> bool:
        return any(self._is_state(one, seen) for one in keys)

    def _is_made(self, module: Module, call: int, row: Node, seen: set[int]) -> bool:
        name, function = module.last_name(row[1]), module.nodes[row[1]]
        is_method = function[0] == "attr"
        if name.endswith("state_dict") or name in ("get_model", "unwrap_model") or (is_method and name in _OF_MODULES):
            return True
        parts = [*row[2], *(value for _, value in row[3])] if name in _COPIES else []
        parts += [function[1]] if is_method and name in _HANDS_ON else []
        return self._any((module.base | one for one in parts), seen) or self._any(self._returned(call), seen)

    def _returned(self, call: int) -> list[int]:
        found = []
        for function in sorted(self.program.targets_of.get(call, ())):
            module = self.program.module_of(function)
            found += [module.base | value for value, _ in module.scopes[function & MASK].returns if value]
        return found

    def filled(self, module: Module, container: int) -> list[int]:
        """The values that methods put into a container, or into an inner one: ``state["optimizers"].append(…)``."""
        if module.index not in self._fills:
            fills = self._fills[module.index] = defaultdict(list)
            for call in (one for name in FILLS for one in module.table.named.get(name, ())):
                row = module.nodes[call]
                function = module.nodes[row[1]]
                if function[0] == "attr":
                    fills[_root(module, function[1])] += [*row[2], *(value for _, value in row[3])]
        return self._fills[module.index].get(container, [])


def _root(module: Module, number: int) -> int:
    """The outermost container of an item, after copies and stores."""
    for _ in range(_MOST):
        row = module.nodes[number]
        if row[0] not in ("item", "copy", "upd"):
            if row[0] != "phi" or not row[1]:
                break
            number = row[1][0]
            continue
        number = row[1]
    return number


def _held(row: Node) -> list[int]:
    """The expressions in a container, or those that a value is taken from."""
    kind = row[0]
    if kind in ("map", "seq"):
        return list(row[2])
    if kind == "phi":
        return list(row[1])
    if kind == "upd":
        return [row[1], row[3]]
    if kind in ("dcomp", "choice"):
        return list(row[2:])
    return [row[1]] if kind in ("copy", "comp", "part", "elem", "attr") else []
