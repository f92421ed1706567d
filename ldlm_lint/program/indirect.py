"""Calls through a name or expression whose function no definition or import at the call site shows."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from ldlm_lint.program.atoms import MASK

if TYPE_CHECKING:
    from ldlm_lint.code.table import Node
    from ldlm_lint.program.modules import Module
    from ldlm_lint.program.program import Program

_INDIRECT = frozenset({"phi", "copy", "param", "item", "choice", "bool", "call", "part", "elem", "free", "attr"})
_NAMED = frozenset({"attr", "free", "impf", "param", "item", "phi", "choice"})
_DEFINITIONS = frozenset({"def", "class", "imp", "impf"})


class IndirectCalls:
    """The indirect calls of a program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._taken_down = False

    @cached_property
    def calls(self) -> list[int]:
        """Their keys."""
        return [call for module in self.program.live for call in self._indirect_of(module)]

    def take_down(self) -> None:
        """Have the program take down where they go."""
        if not self._taken_down:
            self._taken_down = True
            for call in self.calls:
                self.program.ask(("to", call))

    def _indirect_of(self, module: Module) -> Iterator[int]:
        written = {call: name for name, calls in module.table.named.items() for call in calls}
        for call in module.table.sites:
            function = module.nodes[call][1]
            # ``maker = torch.optim.AdamW`` before ``maker(…)``: the index has the name that is at the call.
            if self._is_indirect(module, function) or (call in written and module.last_name(function) != written[call]):
                yield module.base | call

    def _is_indirect(self, module: Module, function: int) -> bool:
        row = module.nodes[function]
        kind = row[0]
        if kind == "free":
            bound = module.scopes[0].bindings.get(row[2])
            rows = [module.nodes[one] for one in bound or ()]
            return any(self._is_value(module, one) or (one[0] == "impf" and one[2] != row[2]) for one in rows)
        if kind == "impf":
            return self._is_value(module, row)
        if kind == "attr":
            owner = self.program.class_of_self(module, row[1])
            if owner is None:
                return row[2] in self._class_valued or self._is_value_of_module(module, row)
            return (owner, row[2]) in self.program.own_writes or self._is_value_in_class(owner, row[2])
        return kind in _INDIRECT

    @cached_property
    def _class_valued(self) -> frozenset[str]:
        """The attributes that may hold a function or class without being defined as one: set to a named object, or
        properties."""
        program = self.program
        names = {name for (_, name), values in program.own_writes.items() if any(self._has_name(value) for value in values)}
        for owner in (one for classes in program.classes.values() for one in classes):
            module = program.module_of(owner)
            bound = module.scopes[owner & MASK].bindings
            names.update(name for name, values in bound.items() if any(self._has_name(module.base | value) for value in values))
        names.update(program.module_of(one).scopes[one & MASK].name for one in program.owner if program.is_property(one))
        return frozenset(names)

    def _has_name(self, key: int) -> bool:
        return self.program.module_of(key).nodes[key & MASK][0] in _NAMED

    def _is_value(self, module: Module, row: Node) -> bool:
        """Whether a name is bound to a value, not by a definition or import: ``make = torch.optim.AdamW``."""
        if row[0] != "impf":
            return row[0] not in _DEFINITIONS
        modules = self.program.modules
        full = modules.absolute(module, row[1], row[3])
        return self._binds_value(modules.find(full, module) if full else None, row[2])

    def _is_value_of_module(self, module: Module, row: Node) -> bool:
        base = module.nodes[row[1]]
        if base[0] == "free":
            bound = module.scopes[0].bindings.get(base[2])
            base = module.nodes[bound[0]] if bound else base
        if base[0] not in ("imp", "impf"):
            return False
        modules = self.program.modules
        level = base[3] if base[0] == "impf" else base[2]
        full = modules.absolute(module, base[1], level)
        name = full if base[0] == "imp" else f"{full}.{base[2]}" if full else base[2]
        return self._binds_value(modules.find(name, module), row[2])

    @staticmethod
    def _binds_value(target: Module | None, name: str) -> bool:
        bound = target.scopes[0].bindings.get(name, ()) if target is not None else ()
        return any(target.nodes[one][0] not in _DEFINITIONS for one in bound) if target is not None else False

    def _is_value_in_class(self, owner: int, name: str) -> bool:
        module = self.program.module_of(owner)
        bound = module.scopes[owner & MASK].bindings.get(name, ())
        return any(module.nodes[one][0] != "def" for one in bound)
