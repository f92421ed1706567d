"""What the base of another package gets from the constructors of the project's classes in between: ``Own(data, workers=4)``
whose ``__init__`` calls ``super().__init__(data, num_workers=workers)``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ldlm_lint.code.table import Node
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.calls import BOUND
from ldlm_lint.program.handles import Argument, Call, Class
from ldlm_lint.program.modules import Module
from ldlm_lint.program.queries import Argument as Found
from ldlm_lint.program.queries import State

if TYPE_CHECKING:
    from ldlm_lint.program.codebase import Codebase


class Constructors:
    """Answers for the constructor calls of a codebase."""

    def __init__(self, code: Codebase) -> None:
        self._code = code
        self._ask = code.ask
        self._program = code.program

    def argument(self, call: Call, owner: Class | None, name: str, position: int | None, *, by_position: bool) -> Argument:
        """What a call gives the base of its class (of another package) for a parameter, by name or place among the
        positional ones; ``by_position``: a class without a constructor of the project takes the same places."""
        return Argument(self._code, self._given(call.key, owner.key if owner else 0, name, position, (), by_position=by_position))

    def _given(self, call: int, owner: int, name: str, position: int | None, outer: tuple[int, ...], *, by_position: bool) -> Found:
        """The arguments of a constructor call of a class; ``outer`` are the calls of the enclosing constructors."""
        init = self._constructor(owner) if owner else 0
        if not init:
            return self._argument(call, name, position, outer) if outer else self._ask.argument(call, name, position if by_position else None)
        inner = self._call_of_base(init)
        if not inner:
            return Found(State.OPEN)
        return self._given(inner, self._above(owner, init), name, position, (*outer, call), by_position=by_position)

    def _constructor(self, owner: int) -> int:
        """The ``__init__`` of a class of the project, 0 if it has none."""
        return next((one for one in self._program.methods(owner, "__init__")), 0)

    def _above(self, owner: int, init: int) -> int:
        """The class of the project after the constructor's class, 0 if another package's comes next."""
        order = self._program.order(owner)
        at = self._program.owner.get(init)
        behind = order[order.index(at) + 1 :] if at in order else []
        return next((one for one in behind if self._constructor(one)), 0)

    def _call_of_base(self, init: int) -> int:
        """The one call of ``super().__init__`` in a constructor, 0 for none or several."""
        module = self._program.module_of(init)
        found = []
        for call in module.scopes[init & MASK].calls:
            function = module.nodes[module.nodes[call][1]]
            if function[0] == "attr" and function[2] == "__init__":
                found.append(module.base | call)
        return found[0] if len(found) == 1 else 0

    def _argument(self, call: int, name: str, position: int | None, outer: tuple[int, ...]) -> Found:
        module = self._program.module_of(call)
        row = module.nodes[call & MASK]
        for keyword, value in row[3]:
            if keyword == name:
                return self._translated(module, value, outer)
        for index, value in enumerate(row[2]):
            given = module.nodes[value]
            if given[0] == "star" and position is not None and index <= position:
                return self._from_positions(module, given[1], position - index, name, outer)
            if index == position:
                return self._translated(module, value, outer)
        return self._from_keywords(module, row, name, outer)

    def _from_positions(self, module: Module, value: int, index: int, name: str, outer: tuple[int, ...]) -> Found:
        """The arguments that ``*args`` of a constructor forwards, and its keywords if they are too few."""
        row = module.plain(value)
        call = outer[-1]
        own = self._program.module_of(call)
        if row[0] != "vararg":
            return Found(State.OPEN)
        given = own.nodes[call & MASK][2]
        at = module.scopes[row[1]].positional - 1 + index
        if any(own.nodes[one][0] == "star" for one in given[: at + 1]):
            return Found(State.OPEN)
        if at < len(given):
            return self._translated(own, given[at], outer[:-1])
        return self._from_keywords(module, module.nodes[self._call_of_base(module.base | row[1]) & MASK], name, outer)

    def _from_keywords(self, module: Module, row: Node, name: str, outer: tuple[int, ...]) -> Found:
        """The arguments of the constructor call that ``**kwargs`` forwards."""
        for keyword, value in row[3]:
            if keyword is None:
                found = self._from_mapping(module, value, name, outer)
                if found.state is not State.ABSENT:
                    return found
        return Found(State.ABSENT)

    def _from_mapping(self, module: Module, value: int, name: str, outer: tuple[int, ...]) -> Found:
        """The arguments that ``**mapping`` of a constructor provides; keywords come from the call that creates the
        object."""
        atoms, mappings = self._program.atoms, self._ask.mappings
        own = [fields[1] for fields in atoms.kinds(self._program.ask(module.base | value), "d") if self._is_kwarg(fields[1])]
        if not own:
            keys = mappings.keys_at(module.base | value)
            if name in keys.entries:
                return Found(State.GIVEN if name in keys.certain else State.MAYBE, tuple(keys.entries[name]))
            return Found(State.OPEN if keys.is_open else State.ABSENT)
        params = module.scopes[module.nodes[own[0] & MASK][1]].params
        found = self._keyword_of(outer, name) if name not in params else Found(State.ABSENT)
        put = mappings.put_into(own[0]).entries.get(name)
        return Found(State.MAYBE, tuple(put)) if found.state is State.ABSENT and put else found

    def _is_kwarg(self, place: int) -> bool:
        return self._program.module_of(place).nodes[place & MASK][0] == "kwarg"

    def _keyword_of(self, outer: tuple[int, ...], name: str) -> Found:
        call = outer[-1]
        if len(outer) == 1:
            return self._ask.argument(call, name)
        module = self._program.module_of(call)
        row = module.nodes[call & MASK]
        for keyword, value in row[3]:
            if keyword == name:
                return self._translated(module, value, outer[:-1])
        return self._from_keywords(module, row, name, outer[:-1])

    def _translated(self, module: Module, value: int, outer: tuple[int, ...]) -> Found:
        """An expression of a constructor: a parameter stands for the argument of the call that creates the object, or
        its default."""
        row = module.plain(value)
        if row[0] != "param" or not outer:
            return Found(State.GIVEN, (module.base | value,))
        function, name = module.base | row[1], row[2]
        node = self._program.argument_node(outer[-1], function, BOUND, name)
        if node is not None:
            own = self._program.module_of(node)
            return Found(State.OPEN) if own.nodes[node & MASK][0] == "star" else self._translated(own, node & MASK, outer[:-1])
        given = self._keyword_of(outer, name)
        if given.state is not State.ABSENT:
            return given
        default = module.scopes[row[1]].defaults.get(name)
        return Found(State.GIVEN, (module.base | default,)) if default is not None else Found(State.OPEN)


__all__ = ["Constructors"]
