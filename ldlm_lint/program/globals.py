"""Resolves names that a scope does not bind itself: names of outer scopes, the module, imports and builtins."""

from __future__ import annotations

import builtins
from collections.abc import Sequence

from ldlm_lint.code.table import Guard, Loop, Node, Scope, column_of
from ldlm_lint.program.atoms import NOTHING, Value
from ldlm_lint.program.constants import Constants
from ldlm_lint.program.modules import Module

_IMPORTS = frozenset({"imp", "impf"})
_DECLARES = frozenset({"imp", "impf", "def", "class"})
"""What binds a name once at the beginning of a program; where it is in column 0, in each run."""
_BUILTINS = frozenset(dir(builtins))


class Globals(Constants):
    """Names from outside of a scope."""

    _last_bound: dict[tuple[int, str], list[int]]

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
        named = bindings.get(name, ())
        bound = named if len(named) == 1 and "*" not in bindings else self._lasting(module, name)
        value, stars = NOTHING, list[str]()
        for one in bound:
            target = self._star_of(module, one) if one not in named else None
            value |= self.get(module.base | one) if target is None else self.get(("global", target.index, name))
        if named:
            return value
        for star in bindings.get("*", ()):
            row = module.nodes[star]
            outside = not row[2] and row[1].partition(".")[0] == "torch" and not name.startswith("_") and name not in _BUILTINS
            if outside and self._star_of(module, star) is None:
                # ``from torch.optim import *``: the names that other packages export are unknown.
                stars.append(f"{row[1]}.{name}")
        if not value and len(stars) == 1:
            value = frozenset([self.atoms.atom("x", stars[0])])
        inner = self.modules.by_name.get(f"{module.name}.{name}")
        if inner is not None and inner.index not in self.modules.dropped:
            value |= frozenset([self.atoms.atom("m", inner.index)])
        return value

    def _star_of(self, module: Module, star: int) -> Module | None:
        """The module of the project that a star import takes names from."""
        row = module.nodes[star]
        return self.modules.find(self.modules.absolute(module, row[1], row[2]), module)

    def _lasting(self, module: Module, name: str) -> list[int]:
        """The bindings and star imports of a name that are left when the file has run: a later import replaces an earlier one."""
        key = (module.index, name)
        if key not in self._last_bound:
            named, places = module.scopes[0].bindings.get(name, ()), module.table.places
            stars = {star: self._gives(module, star, name, set()) for star in module.scopes[0].bindings.get("*", ())}
            found = [*named, *(star for star, gives in stars.items() if gives is not False)]
            replacing = (one for one in found if stars.get(one, True) and module.nodes[one][0] in _DECLARES and not column_of(places[one]))
            last = max((places[one] for one in replacing), default=0)
            self._last_bound[key] = [one for one in found if places[one] >= last or module.nodes[one][0] not in _IMPORTS]
        return self._last_bound[key]

    def _gives(self, module: Module, star: int, name: str, seen: set[int]) -> bool | None:
        """Whether a star import binds a name; None if ``__all__`` of its module may leave it out."""
        target = self._star_of(module, star)
        if target is None or target is module or target.index in seen:
            return False
        seen.add(target.index)
        bindings = target.scopes[0].bindings
        has = name in bindings or any(self._gives(target, one, name, seen) is not False for one in bindings.get("*", ()))
        public = [target.nodes[one] for one in bindings.get("__all__", ())]
        named = len(public) == 1 and public[0][0] == "seq" and any(target.nodes[one] == ("const", name) for one in public[0][2])
        return has and (True if named or (not public and not name.startswith("_")) else None)

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
        inner = self.modules.by_name.get(f"{target.name}.{name}")
        if inner is not None and inner.index in self.modules.dropped:
            inner = None
        if target is module and inner is None and not level:
            return frozenset([self.atoms.atom("x", f"{full}.{name}")])
        if inner is None or (name in target.scopes[0].bindings and target is not module):
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
