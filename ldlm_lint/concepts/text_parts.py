"""Where an expression's value is written, call by call, and the contents of literal sequences and mappings."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ldlm_lint.code.table import Node
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.calls import BOUND, PLAIN, UNKNOWN
from ldlm_lint.program.modules import Module

if TYPE_CHECKING:
    from ldlm_lint.program.queries import Queries

_STEPS = 40
"""Names, parameters and calls that are followed for one expression."""
_MOST_ELEMENTS = 60
_ADDS = frozenset({"append", "extend"})
_READS = frozenset({"join", "items", "keys", "values", "copy", "get", "index", "count"})
_PASSES_ON = frozenset({"list", "tuple", "sorted", "set"})
_ONLY_READ = _PASSES_ON | {"print", "len", "str", "dict"}


class Context(NamedTuple):
    """The context of an expression: the call (key) of the ``function`` that it is in, or the current element of a loop
    (``element``: the row)."""

    function: int = -1
    call: int = 0
    how: int = PLAIN
    element: int = -1
    items: tuple[Place, ...] = ()
    outer: Context | None = None


class Place(NamedTuple):
    """An expression (key) and its context; ``slot``: the list or call (key) that it is an element of, and its index."""

    key: int
    context: Context | None = None
    slot: tuple[int, int] = (-1, 0)

    def beside(self, number: int) -> Place:
        """Another expression of the same module and surroundings."""
        return Place(self.key & ~MASK | number, self.context)


class Places:
    """Follows expressions through a program; unknown results are None."""

    def __init__(self, ask: Queries) -> None:
        self.program = ask.program
        self._ask = ask
        self._open = 0

    def row(self, place: Place) -> Node:
        """The row of an expression."""
        return self.program.module_of(place.key).nodes[place.key & MASK]

    def resolved(self, place: Place) -> Place | None:
        """Where the value of an expression is written: after names, parameters, imports and functions that return
        it.
        """
        for _ in range(_STEPS):
            following = self._next(place)
            if following is place:
                return place
            if following is None:
                return None
            place = following
        return None

    def _next(self, place: Place) -> Place | None:
        module, row = self.program.module_of(place.key), self.row(place)
        kind = row[0]
        if kind == "copy":
            return place.beside(row[1])
        if kind == "free":
            bound = list(self._ask.bound_to(module, row))
            return Place(bound[0]) if len(bound) == 1 else self._container(place)
        if kind == "param":
            return self._given(module, row, place)
        if kind in ("elem", "part"):
            return self._taken(row, place)
        if kind == "call":
            return self._returned(module, row, place)
        return self._container(place) if kind in ("attr", "impf", "item") else place

    def _container(self, place: Place) -> Place:
        """The only container of an attribute or an imported name, where it is created; else the expression itself."""
        value = self.program.ask(place.key)
        made = self.program.atoms.kinds(value, "d")
        return Place(made[0][1]) if len(made) == len(value) == 1 and made[0][1] != place.key else place

    def _given(self, module: Module, row: Node, place: Place) -> Place | None:
        function = module.base | row[1]
        context = place.context
        while context is not None and context.function != function:
            context = context.outer
        if context is None:
            edges = self.program.callers(function)
            if len(edges) != 1:
                return None
            context = Context(function, edges[0].call, edges[0].how)
        if context.how == UNKNOWN:
            return None
        given = self.program.argument_node(context.call, function, context.how, row[2])
        if given is not None:
            return None if self.row(Place(given))[0] == "star" else Place(given, context.outer)
        default = module.scopes[row[1]].defaults.get(row[2])
        unpacked = any(name is None for name, _ in self.row(Place(context.call))[3])
        return None if default is None or unpacked else Place(module.base | default)

    def _taken(self, row: Node, place: Place) -> Place | None:
        """The element of a loop or an unpacking in the current iteration."""
        if row[0] == "elem":
            context = place.context
            while context is not None and context.element != place.key:
                context = context.outer
            return context.items[0] if context is not None and len(context.items) == 1 else place if context is None else None
        base = place.beside(row[1])
        context = place.context
        while context is not None and context.element != base.key:
            context = context.outer
        if context is not None and len(context.items) > 1:
            return context.items[row[2]] if 0 <= row[2] < len(context.items) else None
        whole = self.resolved(base)
        parts = self.elements(whole) if whole is not None and self.row(whole)[0] == "seq" else None
        return parts[row[2]] if parts is not None and 0 <= row[2] < len(parts) else None

    def _returned(self, module: Module, row: Node, place: Place) -> Place | None:
        functions = self.program.ask(module.base | row[1])
        atoms = self.program.atoms
        own = [(fields[1], PLAIN) for fields in atoms.kinds(functions, "f")] + [(fields[1], BOUND) for fields in atoms.kinds(functions, "b")]
        if len(own) != 1 or len(functions) != 1:
            return place
        function, how = own[0]
        scope = self.program.module_of(function).scopes[function & MASK]
        if len(scope.returns) != 1 or scope.yields or not scope.returns[0][0] or scope.decorators or self._depth(place.context) > _STEPS:
            return None
        return Place(self.program.module_of(function).base | scope.returns[0][0], Context(function, place.key, how, outer=place.context))

    @staticmethod
    def _depth(context: Context | None) -> int:
        depth = 0
        while context is not None:
            depth, context = depth + 1, context.outer
        return depth

    def elements(self, place: Place, reader: Place | None = None) -> list[Place] | None:
        """The elements of a list or a comprehension, in order, when a call (``reader``) reads it."""
        rounds = self.rounds(place, reader)
        return None if rounds is None or any(len(one) != 1 for one in rounds) else [one[0] for one in rounds]

    def rounds(self, place: Place, reader: Place | None = None) -> list[tuple[Place, ...]] | None:
        """The values of each iteration over an expression: one value, or the key and value of a mapping's item."""
        self._open += 1
        # Lists that are added up, or made of each other, can be nested arbitrarily deep.
        written = self.resolved(place) if self._open <= _STEPS else None
        found = None if written is None else self._rounds(written, reader or place)
        self._open -= 1
        return found if found is not None and len(found) <= _MOST_ELEMENTS else None

    def _rounds(self, place: Place, reader: Place) -> list[tuple[Place, ...]] | None:
        module, row = self.program.module_of(place.key), self.row(place)
        if row[0] == "seq":
            own = self._of_sequence(row, place)
            return None if own is None else self._with_added(module, place, reader, own)
        if row[0] in ("map", "upd"):
            entries = self._entries(place)
            return None if entries is None else [(key,) for key, _ in entries.values()]
        if row[0] == "comp":
            return self._of_comprehension(module, row, place)
        if row[0] == "call":
            return self._of_call(module, row, place)
        if row[0] == "op" and row[1] == "Add":
            sides = [self.rounds(place.beside(one)) for one in row[2:4]]
            return None if any(side is None for side in sides) else [one for side in sides for one in side or ()]
        return None

    def _of_sequence(self, row: Node, place: Place) -> list[tuple[Place, ...]] | None:
        found: list[tuple[Place, ...]] = []
        for index, one in enumerate(row[2]):
            element = place.beside(one)._replace(slot=(place.key, index))
            if self.row(element)[0] == "star":
                inner = self.rounds(place.beside(self.row(element)[1]))
                if inner is None:
                    return None
                found += inner
            else:
                found.append((element,))
        return found

    def _of_call(self, module: Module, row: Node, place: Place) -> list[tuple[Place, ...]] | None:
        function = module.nodes[row[1]]
        if function[0] == "free" and function[2] in _PASSES_ON and len(row[2]) == 1 and not self._ask.program.ask(module.base | row[1]) - self._builtin(function):
            return self.rounds(place.beside(row[2][0]))
        if function[0] == "attr" and function[2] in ("items", "keys", "values") and not row[2]:
            entries = self.entries(place.beside(function[1]))
            if entries is None:
                return None
            first, last = {"items": (0, 2), "keys": (0, 1), "values": (1, 2)}[function[2]]
            return [tuple(one)[first:last] for one in entries.values()]
        return None

    def _builtin(self, function: Node) -> frozenset[int]:
        return frozenset([self.program.atoms.atom("x", f"builtins.{function[2]}")])

    def entries(self, place: Place) -> dict[str, tuple[Place, Place]] | None:
        """The items of a mapping, key and value, by the texts of their keys."""
        written = self.resolved(place)
        return None if written is None else self._entries(written)

    def _entries(self, place: Place, stores: frozenset[int] = frozenset()) -> dict[str, tuple[Place, Place]] | None:
        """The items of a mapping by the texts of their keys; ``stores`` are those into it that were passed on the way to it."""
        row = self.row(place)
        if row[0] == "copy":
            return self._entries(place.beside(row[1]), stores)
        if row[0] == "upd":
            before = self._entries(place.beside(row[1]), stores | {place.key}) if len(stores) < _MOST_ELEMENTS else None
            key = self.row(place.beside(row[2]))
            if before is None or key[0] != "const":
                return None
            return {**before, str(key[1]): (place.beside(row[2]), place.beside(row[3]))}
        if row[0] != "map" or self._changes(place, stores):
            return None
        keys = [place.beside(one) for one in row[1]]
        if any(self.row(key)[0] != "const" for key in keys):
            return None
        return {str(self.row(key)[1]): (key, place.beside(value)) for key, value in zip(keys, row[2], strict=True)}

    def _of_comprehension(self, module: Module, row: Node, place: Place) -> list[tuple[Place, ...]] | None:
        """A comprehension with one loop and no condition."""
        number = place.key & MASK
        loop = max((one for one in range(number) if module.nodes[one][0] == "elem" and self._is_loop_of(module, one, number)), default=0)
        iterable = module.nodes[loop][1] if loop else 0
        inner = [one for one in module.table.loops if one.kind == "comp" and iterable <= one.value < number]
        if not loop or len(inner) != 1 or any(loop < one.test < number for one in module.table.guards):
            return None
        rounds = self.rounds(place.beside(iterable))
        if rounds is None:
            return None
        return [(Place(module.base | row[1], Context(element=module.base | loop, items=one, outer=place.context)),) for one in rounds]

    @staticmethod
    def _is_loop_of(module: Module, element: int, number: int) -> bool:
        iterable = module.nodes[element][1]
        return any(one.kind == "comp" and one.value == iterable and one.place == module.table.places[element] for one in module.table.loops)

    def _with_added(
        self, module: Module, place: Place, reader: Place, own: list[tuple[Place, ...]]
    ) -> list[tuple[Place, ...]] | None:
        """A list with the elements appended one after the other before it is read; None if other code may change it."""
        number = place.key & MASK
        bound = [(scope, event) for scope in module.scopes for event in scope.events if event[0] == "bind" and event[1] == number]
        if not bound:
            return own if not self._changes(place, frozenset()) else None
        scope, (_, _, loop, guard, _, _) = bound[0]
        handled: set[int] = set()
        for call in scope.calls:
            row, site = module.nodes[call], module.table.sites[call]
            function = module.nodes[row[1]]
            if (reader.key & ~MASK) == module.base and self._is_read_before(module, call, reader.key & MASK):
                handled.add(module.base | call)
                continue
            if function[0] == "attr" and module.uncopied(function[1]) == number:
                if function[2] in _READS:
                    continue
                if function[2] not in _ADDS or len(row[2]) != 1 or (site.loop, site.guard) != (loop, guard):
                    return None
                handled.add(module.base | call)
                one = place.beside(row[2][0])._replace(slot=(module.base | call, 0))
                added = [(one,)] if function[2] == "append" else self.rounds(place.beside(row[2][0]))
                if added is None:
                    return None
                own = [*own, *added]
            elif self._hands_out(module, row, number):
                return None
        return None if self._changes(place, handled) else own

    @staticmethod
    def _is_read_before(module: Module, call: int, reader: int) -> bool:
        """Whether a call is the one that reads, or is after it in the same function: rows are in the order of
        evaluation."""
        reads = module.table.sites.get(reader)
        return reads is not None and reads.scope == module.table.sites[call].scope and call >= reader

    def _hands_out(self, module: Module, row: Node, number: int) -> bool:
        """Whether a call receives a list and may change it."""
        function = module.nodes[row[1]]
        given = any(module.uncopied(one) == number for one in (*row[2], *(value for _, value in row[3])))
        name = function[2] if function[0] in ("attr", "free") else ""
        return given and name not in _ONLY_READ | {"join"}

    def _changes(self, place: Place, handled: frozenset[int] | set[int]) -> bool:
        """Whether anything besides the ``handled`` values is put into a container."""
        container = self.program.atoms.atom("d", place.key)
        index = self.program.module_of(place.key).index
        for name in self.program.names_of(place.key):
            for change in {*self.program.changes.get(name, ()), *self.program.changes.get((index, name), ())} - set(handled):
                module = self.program.module_of(change)
                row = module.nodes[change & MASK]
                receiver = row[1] if row[0] == "upd" else module.nodes[row[1]][1]
                if container in self.program.ask(module.base | receiver):
                    return True
        return False


__all__ = ["Context", "Place", "Places"]
