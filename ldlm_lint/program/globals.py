"""Resolves names that a scope does not bind itself: names of outer scopes, the module, imports and builtins."""

from __future__ import annotations

import builtins
from collections.abc import Sequence

from ldlm_lint.code.table import Guard, Loop, Node, Scope
from ldlm_lint.program.atoms import NOTHING, Value
from ldlm_lint.program.constants import Constants
from ldlm_lint.program.modules import Module

_BUILTINS = frozenset(dir(builtins))


class Globals(Constants):
    """Names from outside of a scope."""

    def _free(self, module: Module, row: Node, key: int) -> Value:
        name = row[2]
        inner, at = row[1], module.scopes[row[1]].parent
        while at > 0:
            scope = module.scopes[at]
            if scope.kind == "def" and name in scope.bindings:
                return frozenset().union(*(self.closed(module.base | one) for one in _seen_by(module, scope, inner, name)))
            inner, at = at, scope.parent
        bindings = module.scopes[0].bindings
        if name in bindings:
            return self.get(("global", module.index, name))
        value = self.get(("global", module.index, name)) if "*" in bindings else NOTHING
        if value or name not in _BUILTINS:
            return value
        return frozenset([self.atoms.atom("x", f"builtins.{name}")])

    def global_of(self, index: int, name: str) -> Value:
        """Question ``("global", module, name)``: what a module binds to a name, or imports with a star."""
        module = self.modules.all[index]
        bindings = module.scopes[0].bindings
        if name in bindings:
            return frozenset().union(*(self.get(module.base | one) for one in bindings[name]))
        value, stars = NOTHING, list[str]()
        for star in bindings.get("*", ()):
            row = module.nodes[star]
            target = self.modules.find(self.modules.absolute(module, row[1], row[2]), module)
            if target is not None and target is not module:
                value |= self.get(("global", target.index, name))
            elif target is None and not row[2] and row[1].partition(".")[0] == "torch" and not name.startswith("_") and name not in _BUILTINS:
                # ``from torch.optim import *``: the names that other packages export are unknown.
                stars.append(f"{row[1]}.{name}")
        if not value and len(stars) == 1:
            value = frozenset([self.atoms.atom("x", stars[0])])
        inner = self.modules.by_name.get(f"{module.name}.{name}")
        if inner is not None and inner.index not in self.modules.dropped:
            value |= frozenset([self.atoms.atom("m", inner.index)])
        return value

    def _imported(self, module: Module, row: Node, key: int) -> Value:
        full = self.modules.absolute(module, row[1], row[2])
        target = self.modules.find(full, module)
        return frozenset([self.atoms.atom("x", full) if target is None else self.atoms.atom("m", target.index)])

    def _imported_from(self, module: Module, row: Node, key: int) -> Value:
        name, level = row[2], row[3]
        full = self.modules.absolute(module, row[1], level)
        target = self.modules.find(full, module) if full else None
        if target is None:
            if level or self.modules.is_known(f"{full}.{name}"):
                target = self.modules.find(f"{full}.{name}" if full else name, module)
                if target is not None:
                    return frozenset([self.atoms.atom("m", target.index)])
            return frozenset([self.atoms.atom("x", f"{full}.{name}")])
        if target is module and not level:
            return frozenset([self.atoms.atom("x", f"{full}.{name}")])
        inner = self.modules.by_name.get(f"{target.name}.{name}")
        if inner is None or name in target.scopes[0].bindings:
            return self.get(("global", target.index, name))
        return frozenset([self.atoms.atom("m", inner.index)])


def _seen_by(module: Module, scope: Scope, inner: int, name: str) -> list[int]:
    """The possible values of a function's name in an inner function, without bindings that are surely replaced before
    the inner one."""
    bound = scope.bindings[name]
    place = module.scopes[inner].place
    events = [event for event in scope.events if event[0] == "bind"] if len(bound) > 1 else []
    made = next((event for event in events if event[5] == module.scopes[inner].name and event[4] >= place), None)
    if made is None:
        return list(bound)
    table = module.table
    guards, loops = _above(table.guards, made[3]), _above(table.loops, made[2])
    sure = [event for event in events if event[5] == name and event[4] < place and event[3] in guards and event[2] in loops]
    if not sure:
        return list(bound)
    last = max(event[4] for event in sure)
    earlier = {event[1] for event in events if event[5] == name and event[4] < last}
    return [one for one in bound if one not in earlier]


def _above(tree: Sequence[Guard] | Sequence[Loop], number: int) -> set[int]:
    """A guard or loop with all enclosing ones, and -1 for none."""
    found = {-1}
    while number >= 0:
        found.add(number)
        number = tree[number].parent
    return found
