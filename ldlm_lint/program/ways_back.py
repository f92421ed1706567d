"""Where a value comes from: one step back through names, parameters, attributes, choices, tuples and returned values.

Values (`ldlm_lint.program.atoms`) say what an object is; a wrapper and the model inside of it are one object there. Who
needs to know which of the two an expression holds goes back to the expressions that made it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.calls import UNKNOWN
from ldlm_lint.program.modules import Module
from ldlm_lint.program.program import Program

_SAME = frozenset({"copy", "enter", "star"})


class Entered(NamedTuple):
    """A function (key) that the walk entered from its result, and the call (key) that it returns to."""

    function: int
    call: int


class Held(NamedTuple):
    """An expression (key) whose value is looked for: the ``path`` of constant keys to take from it, outermost first, and
    the calls whose results led into its function, the outermost first."""

    key: int
    path: tuple[object, ...] = ()
    entered: tuple[Entered, ...] = ()


class WaysBack:
    """One step back from an expression to those that its value may be from."""

    def __init__(self, program: Program) -> None:
        self.program = program

    def before(self, held: Held) -> Iterator[Held]:
        """The expressions that give an expression its value; none where it is made, or where that is not known."""
        module = self.program.module_of(held.key)
        row = module.nodes[held.key & MASK]
        kind = row[0]
        if kind in _SAME:
            yield held._replace(key=module.base | row[1])
        elif kind == "phi":
            yield from (held._replace(key=module.base | one) for one in row[1])
        elif kind == "choice":
            yield from (held._replace(key=module.base | one) for one in row[2:4])
        elif kind == "bool":
            yield from (held._replace(key=module.base | one) for one in row[2])
        elif kind == "part":
            yield held._replace(key=module.base | row[1], path=(row[2], *held.path))
        elif kind == "item" and module.nodes[row[2]][0] == "const":
            yield held._replace(key=module.base | row[1], path=(module.nodes[row[2]][1], *held.path))
        elif kind in ("seq", "map", "upd"):
            yield from self._taken_from(module, row, held)
        elif kind == "param":
            yield from self._given(module, row, held)
        elif kind == "call":
            yield from self._returned(held)
        else:
            yield from (Held(one, held.path) for one in self._bound(module, row))

    @staticmethod
    def _taken_from(module: Module, row: tuple[object, ...], held: Held) -> Iterator[Held]:
        """What is under the first key of the path in a display or an updated container."""
        if not held.path:
            return
        wanted, rest = held.path[0], held.path[1:]
        if row[0] == "seq":
            elements = row[2]
            if isinstance(elements, (tuple, list)) and isinstance(wanted, int) and 0 <= wanted < len(elements):
                yield held._replace(key=module.base | elements[wanted], path=rest)
            return
        if row[0] == "upd":
            base, key, value = (int(str(one)) for one in row[1:4])
            is_it = module.nodes[key][:2] == ("const", wanted)
            yield held._replace(key=module.base | value, path=rest) if is_it else held._replace(key=module.base | base)
            return
        keys, values = row[1], row[2]
        if isinstance(keys, (tuple, list)) and isinstance(values, (tuple, list)):
            found = [value for key, value in zip(keys, values, strict=True) if module.nodes[key][:2] == ("const", wanted)]
            yield from (held._replace(key=module.base | value, path=rest) for value in found[-1:])

    def _given(self, module: Module, row: tuple[object, ...], held: Held) -> Iterator[Held]:
        """The arguments for a parameter: at the call that the walk came from, or else at all known calls."""
        program = self.program
        function, name = module.base | int(str(row[1])), str(row[2])
        at = held.entered[-1] if held.entered and held.entered[-1].function == function else None
        rest = held.entered[:-1] if at is not None else ()
        for edge in program.callers(function):
            if edge.how == UNKNOWN or (at is not None and edge.call != at.call):
                continue
            node = program.argument_node(edge.call, function, edge.how, name)
            default = module.scopes[function & MASK].defaults.get(name)
            if node is not None:
                yield Held(node, held.path, rest)
            elif default is not None:
                yield Held(module.base | default, held.path, ())

    def _returned(self, held: Held) -> Iterator[Held]:
        """What the functions return that a call goes to; nothing for constructors, which make an object."""
        program = self.program
        for function in sorted(program.targets_of.get(held.key, ())):
            module = program.module_of(function)
            scope = module.scopes[function & MASK]
            if scope.name != "__init__" and not scope.yields and all(one.function != function for one in held.entered):
                entered = (*held.entered, Entered(function, held.key))
                yield from (Held(module.base | number, held.path, entered) for number, _ in scope.returns if number)

    def _bound(self, module: Module, row: tuple[object, ...]) -> Iterator[int]:
        """What a name of another scope, an imported name or an attribute is bound to (keys)."""
        if row[0] == "free":
            yield from self._of_name(module, int(str(row[1])), str(row[2]))
        elif row[0] == "impf":
            full = self.program.modules.absolute(module, str(row[1]), int(str(row[3])))
            target = self.program.modules.find(full, module) if full else None
            if target is not None and target is not module:
                yield from (target.base | one for one in target.scopes[0].bindings.get(str(row[2]), ()))
        elif row[0] == "attr":
            yield from self._of_attribute(module, int(str(row[1])), str(row[2]))

    @staticmethod
    def _of_name(module: Module, scope: int, name: str) -> Iterator[int]:
        at = module.scopes[scope].parent
        while at >= 0:
            bound = module.scopes[at].bindings.get(name, ())
            if bound and module.scopes[at].kind != "class":
                yield from (module.base | one for one in bound)
                return
            at = module.scopes[at].parent

    def _of_attribute(self, module: Module, base: int, name: str) -> Iterator[int]:
        """What the classes of an object bind to an attribute or set on their objects, or a module to a name."""
        program = self.program
        own = program.class_of_self(module, base)
        value = program.ask(module.base | base)
        classes = {own} if own is not None else {fields[1] for kind in ("i", "self") for fields in program.atoms.kinds(value, kind)}
        family = {one for owner in classes for one in (*program.order(owner), *program.below(owner))}
        for owner in sorted(family):
            home = program.module_of(owner)
            yield from program.own_writes.get((owner, name), ())
            for one in home.scopes[owner & MASK].bindings.get(name, ()):
                yield from self._of_property(home, one) or [home.base | one]
        for target, written in program.other_writes.get(name, ()) if family else ():
            held = {fields[1] for kind in ("i", "self") for fields in program.atoms.kinds(program.ask(target), kind)}
            if held & family:
                yield written
        for fields in program.atoms.kinds(value, "m"):
            target_module = program.modules.all[fields[1]]
            yield from (target_module.base | one for one in target_module.scopes[0].bindings.get(name, ()))

    def _of_property(self, module: Module, number: int) -> list[int]:
        """What a method that is read like an attribute returns (keys); empty for anything else."""
        row = module.nodes[number]
        while row[0] == "call" and row[2]:
            row = module.nodes[row[2][0]]
        is_one = row[0] == "def" and self.program.is_property(module.base | row[1])
        return [module.base | value for value, _ in module.scopes[row[1]].returns if value] if is_one else []


def all_before(start: Held, before: Callable[[Held], Iterable[Held]]) -> dict[Held, bool]:
    """All that steps back lead to from an expression, and whether each is an end: nothing is before it.

    A way that comes back to an expression for a deeper part of it (``model = model.module`` in a loop) is not followed
    again.
    """
    came_from: dict[Held, Held | None] = {start: None}
    is_end: dict[Held, bool] = {}
    todo = [start]
    while todo:
        held = todo.pop()
        steps = list(dict.fromkeys(before(held)))
        is_end[held] = not steps
        for one in steps:
            if one not in came_from and not _only_goes_deeper(one, held, came_from):
                came_from[one] = held
                todo.append(one)
    return is_end


def _only_goes_deeper(held: Held, at: Held | None, came_from: Mapping[Held, Held | None]) -> bool:
    """Whether the way to an expression has been there before, for less of a path."""
    while at is not None:
        if at.key == held.key and len(at.path) < len(held.path):
            return True
        at = came_from[at]
    return False


__all__ = ["Entered", "Held", "WaysBack", "all_before"]
