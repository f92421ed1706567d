"""Calls: their targets, their arguments, and the callers of a function.

A caller is confirmed by what its function expression is, never by its arguments; an edge ``call << 2 | how`` says how
arguments are bound to parameters: 0 plainly, 1 after the object of a bound method, 2 from the second argument on, 3 not
known.
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from ldlm_lint.program.atoms import (
    DEVICE,
    FIRST,
    HOMES,
    HOST_TENSOR,
    IF_TENSOR,
    LOADER,
    MASK,
    NOTHING,
    ON_DEVICE,
    ON_HOST,
    SHIFT,
    SOME_TENSOR,
    TENSOR,
    Value,
)
from ldlm_lint.program.batches import Arguments
from ldlm_lint.program.containers import Containers
from ldlm_lint.vocabulary.loaders import LOADERS

PLAIN, BOUND, LATER, UNKNOWN = range(4)
Receiver = tuple[str, int]
"""How an object is known, "i", "self" or "c", and its class."""


class Caller(NamedTuple):
    """A call (key) that goes to a function, and how its arguments are bound to the parameters."""

    call: int
    how: int


class Summary(NamedTuple):
    """What a function returns, by how a call changes it: ``given`` holds the names of its own parameters with the kinds of
    their symbols, ``others`` the symbols of other functions."""

    value: Value
    plain: Value
    selves: tuple[int, ...]
    given: dict[str, set[str]]
    others: Value


class Calls(Containers):
    """The call graph, as far as it was computed."""

    def begin_calls(self) -> None:
        """Start without any known call."""
        self.targets_of: dict[int, set[int]] = defaultdict(set)
        """The functions that a call goes to."""
        self._known: dict[int, set[int]] = defaultdict(set)
        self._handing: dict[int, bool] = {}
        self._summaries: dict[int, Summary] = {}

    def edge(self, function: int, call: int, how: int) -> None:
        """Record that a call goes to a function."""
        edge, known = (call << 2) | how, self._known[function]
        if edge not in known:
            known.add(edge)
            self.targets_of[call].add(function)
            self.put(("edges", function), frozenset([edge]))

    def targets(self, functions: Value, args: Arguments | None) -> tuple[dict[tuple[int, int], Receiver | None], set[int]]:
        """The functions that a value may be with how they are bound (-1: a constructor), and the objects that a call makes."""
        found: dict[tuple[int, int], Receiver | None] = {}
        made: set[int] = set()
        for one in sorted(functions):
            if one < FIRST:
                continue
            fields = self.atoms.of[one]
            kind = fields[0]
            if kind == "f":
                found[fields[1], PLAIN] = None
            elif kind == "b":
                self._add_bound(found, fields[1], (fields[2], fields[3]))
            elif kind == "c" or (kind == "self" and fields[2:] == ("cls",)):
                made.add(self.atoms.atom("i" if kind == "c" else "self", fields[1]))
                for function in self.methods(fields[1], "__init__", exact=kind == "c"):
                    found[function, -1] = None
            elif kind in ("i", "self"):
                callable_ = self.get(("callable", fields[1], kind == "self"))
                for function in callable_:
                    self._add_bound(found, function, (kind, fields[1]))
                if not callable_ and args is not None and self.is_module(fields[1]) and (given := args()):
                    made |= self.tensor_of(given)
        return found, made

    @staticmethod
    def _add_bound(found: dict[tuple[int, int], Receiver | None], function: int, receiver: Receiver) -> None:
        # A method bound to several objects has no known object.
        known = found.get((function, BOUND), receiver)
        found[function, BOUND] = receiver if known == receiver else None

    def callvalue(
        self, functions: Value, call: int | None, how: int | None = None, args: Arguments | None = None, depth: int = 0
    ) -> Value:
        """The result of calling a value; records where the call goes."""
        found, made = self.targets(functions, args)
        value = set(made)
        for one in functions:
            fields = self.atoms.of[one] if one >= FIRST else ("",)
            if fields[0] == "partial":
                value |= self.callvalue(self.get(("unwrapped", fields[1])), call, UNKNOWN)
            elif call is not None and (fields[0] == "c" or fields[2:] == ("cls",)):
                value |= self._loader_of_project(fields[1], call)
            elif fields[0] == "d" and call is not None and self.names_of_named_tuple(fields[1]):
                value.add(self.atoms.atom("d", call))
            elif fields[0] == "d" and depth < 3 and self._is_sequential(fields[1]):
                inner = self.get(("content", fields[1], None))
                layers = frozenset(two for two in inner if two >= FIRST and self.atoms.of[two][0] in ("i", "self", "d"))
                value |= self.callvalue(layers, call, BOUND if how is None else how, args, depth + 1)
                if args is not None and not value and (given := args()):
                    # Layers of torch alone.
                    value |= self.tensor_of(given)
        for (function, bound), receiver in found.items():
            binding = abs(bound) if how is None else how
            if call is not None:
                self.edge(function, call, binding)
            if bound >= 0:
                value |= self.instantiate(function, call, binding, receiver)
        return frozenset(value)

    def _loader_of_project(self, owner: int, call: int) -> Value:
        """A data loader by the call that makes it, if a class of the project is a data loader."""
        outside = sorted(name for name in self.outside_of(owner) if name in LOADERS)
        if not outside:
            return NOTHING
        made = frozenset([self.atoms.atom("o", outside[0], call)])
        return made if self.methods(owner, "__iter__") else made | frozenset([LOADER])

    def _is_sequential(self, place: int) -> bool:
        module = self.module_of(place)
        row = module.nodes[place & MASK]
        return row[0] == "call" and module.last_name(row[1]) == "Sequential"

    def callable_of(self, owner: int, with_subclasses: bool) -> Value:
        """Question ``("callable", class, with subclasses)``: the functions that a call of an object goes to."""
        exact = not with_subclasses
        functions = self.methods(owner, "forward", exact=exact) if self.is_module(owner) else []
        functions = functions or self.methods(owner, "__call__", exact=exact) or self.methods(owner, "forward", exact=exact)
        return frozenset(functions)

    def unwrapped(self, call: int) -> Value:
        """Question ``("unwrapped", call)``: what a ``functools.partial`` calls."""
        module = self.module_of(call)
        found: set[int] = set()
        for one in self.get(module.base | module.nodes[call & MASK][2][0]):
            if one >= FIRST and self.atoms.of[one][0] == "partial":
                found |= self.get(("unwrapped", self.atoms.of[one][1]))
            else:
                found.add(one)
        return frozenset(found)

    def tensor_of(self, args: list[Value]) -> Value:
        """The result of a torch function that keeps the device of its arguments."""
        homes: set[int] = set()
        for one in args:
            homes |= self.tensor_part(one)
        if self.is_symbolic and not homes <= HOMES:
            return ON_DEVICE if DEVICE in homes else frozenset(homes) - ON_HOST
        if DEVICE in homes:
            return ON_DEVICE
        if IF_TENSOR in homes or TENSOR in homes:
            return frozenset(homes) & frozenset([IF_TENSOR, TENSOR]) | SOME_TENSOR
        if HOST_TENSOR in homes:
            return ON_HOST
        return NOTHING if self.is_missing(*args) else SOME_TENSOR

    def instantiate(self, function: int, call: int | None, how: int, receiver: Receiver | None = None) -> Value:
        """What a function returns, its summary with the arguments of a call and the class of the receiver inserted."""
        summary = self.get(("returns", function))
        atoms = self.atoms
        if atoms.symbolic.isdisjoint(summary) and atoms.selves.isdisjoint(summary):
            # What it yields of an argument is another thing for each call.
            is_own = call is not None and how != UNKNOWN and self._hands_on(function)
            return frozenset([atoms.atom("gen", function, call, how)]) if is_own else summary
        parts = self._parts_of(function, summary)
        value = set(parts.plain)
        value.update(one if receiver is None else self._received(one, receiver) for one in parts.selves)
        for name, kinds in parts.given.items():
            given = self.argument(call, function, how, name)
            value |= given if "p" in kinds else NOTHING
            value |= self.tensor_part(given) if "t" in kinds else NOTHING
        if self.is_symbolic:
            value |= parts.others
        else:
            self._add_closed(value, parts.others)
        if DEVICE in value:
            value.discard(TENSOR)
            value.discard(IF_TENSOR)
        return frozenset(value)

    def _parts_of(self, function: int, summary: Value) -> Summary:
        known = self._summaries.get(function)
        if known is None or known.value != summary:
            known = self._summaries[function] = self._taken_apart(function, summary)
        return known

    def _taken_apart(self, function: int, summary: Value) -> Summary:
        atoms, given = self.atoms, dict[str, set[str]]()
        selves = tuple(one for one in summary if one in atoms.selves)
        others: set[int] = set()
        for one in summary & atoms.symbolic:
            kind, key = atoms.of[one]
            module = self.module_of(key)
            row = module.nodes[key & MASK]
            if row[0] != "param" or (module.base | row[1]) != function:
                others.add(one)
            elif kind != "n":
                given.setdefault(row[2], set()).add(kind)
        return Summary(summary, summary - atoms.symbolic - atoms.selves, selves, given, frozenset(others))

    def _add_closed(self, found: set[int], symbols: Value) -> None:
        """Add what the symbols of other functions are for all of their callers."""
        of, get = self.atoms.of, self.get
        for one in symbols:
            kind, key = of[one]
            found |= get(key) if kind != "t" else self.tensor_part(get(key))

    def _hands_on(self, function: int) -> bool:
        """Whether a generator function yields elements of an argument."""
        if function not in self._handing:
            yields = self.module_of(function).scopes[function & MASK].yields
            self._handing[function] = any(self.handed_on_by(function, number) for number in yields)
        return self._handing[function]

    def handed_on_by(self, function: int, number: int) -> str:
        """The parameter whose elements a ``yield`` of a generator function gives; empty if it gives something else."""
        module = self.module_of(function)
        row = module.nodes[module.uncopied(number)]
        given = module.nodes[module.uncopied(row[1])] if row[0] == "elem" else ("",)
        return str(given[2]) if given[0] == "param" and module.base | given[1] == function else ""

    def yielded(self, function: int, number: int, call: int, how: int) -> Value:
        """What a ``yield`` of a generator function gives to the loop over the result of one call."""
        name = self.handed_on_by(function, number)
        given = self.elements(self.argument(call, function, how, name)) if name else NOTHING
        return given or self.get(self.module_of(function).base | number)

    def _received(self, one: int, receiver: Receiver) -> int:
        """The object that ``self`` of a summary is for a receiver."""
        fields = self.atoms.of[one]
        kind, owner = receiver
        if fields[1] not in self.order(owner):
            return one
        exact = kind in ("i", "c")
        if fields[2:]:
            return self.atoms.atom("c", owner) if exact else self.atoms.atom("self", owner, "cls")
        return self.atoms.atom("i" if exact else "self", owner)

    def argument(self, call: int | None, function: int, how: int, name: str) -> Value:
        """The value of a parameter at one call, or its default."""
        module = self.module_of(function)
        scope = module.scopes[function & MASK]
        if call is None or how == UNKNOWN:
            return self.closed(module.base | scope.parameters[name])
        value, given = self.argument_at(call, function, how, name)
        if not given and name in scope.defaults:
            return self.closed(module.base | scope.defaults[name])
        return value

    def argument_at(self, call: int, function: int, how: int, name: str, *, unpack: bool = True) -> tuple[Value, bool]:
        """The argument of a call for a parameter, and whether there is one; ``**`` is included if ``unpack``."""
        node = self.argument_node(call, function, how, name)
        module = self.module_of(call)
        if node is not None:
            if module.nodes[node & MASK][0] == "star":
                return self.elements(self.get(module.base | module.nodes[node & MASK][1])), True
            return self.get(node), True
        value = NOTHING
        if unpack:
            for keyword, given in module.nodes[call & MASK][3]:
                if keyword is None:
                    value |= self.item(self.get(module.base | given), name)
        return value, bool(value)

    def argument_node(self, call: int, function: int, how: int, name: str) -> int | None:
        """The expression that a call passes for a parameter (a ``star`` row where one is before); None for none."""
        module = self._all[call >> SHIFT]
        nodes = module.nodes
        row = nodes[call & MASK]
        for keyword, given in row[3]:
            if keyword == name:
                return module.base | given
        if not row[2]:
            return None
        scope = self._all[function >> SHIFT].scopes[function & MASK]
        index = scope.params.index(name)
        place = self.place_of_argument(function, how, index)
        if place >= 0 and index < scope.positional:
            for position, given in enumerate(row[2][: place + 1]):
                if position == place or nodes[given][0] == "star":
                    return module.base | given
        return None

    def place_of_argument(self, function: int, how: int, index: int) -> int:
        """The place among the positional arguments of a call that a parameter takes."""
        if how == BOUND:
            return index - 1
        if how == LATER and function not in self.bound:
            return index + 1
        return index

    def look_at(self, call: int) -> None:
        """Find where a call goes without its arguments; what is found later is found when the call is computed."""
        module = self.module_of(call)
        for function, bound in self.targets(self.get(module.base | module.nodes[call & MASK][1]), None)[0]:
            self.edge(function, call, abs(bound))

    def callers(self, function: int) -> list[Caller]:
        """All calls that go to a function, in order."""
        return [Caller(edge >> 2, edge & 3) for edge in sorted(self.get(("edges", function)))]
