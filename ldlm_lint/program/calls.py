"""Calls: their targets, their arguments, and the callers of a function.

A caller is confirmed by what its function expression is, never by its arguments; an edge ``call << 2 | how`` says how
arguments are bound to parameters: 0 plainly, 1 after the object of a bound method, 2 from the second argument on, 3 not
known.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property

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
    SOME_TENSOR,
    TENSOR,
    Value,
)
from ldlm_lint.program.containers import Containers
from ldlm_lint.program.modules import Module
from ldlm_lint.vocabulary.loaders import LOADERS
from ldlm_lint.vocabulary.tensors import EVERYBODYS

PLAIN, BOUND, LATER, UNKNOWN = range(4)
CALLERS = 40
"""Calls of a method's name on other objects above which they are not looked through for callers."""
_IMPLICIT = frozenset({"__init__", "__new__", "__call__", "forward", "__getitem__", "__iter__", "__enter__"})
Receiver = tuple[str, int]
"""How an object is known, "i", "self" or "c", and its class."""


class Calls(Containers):
    """The call graph, as far as it was computed."""

    def begin_calls(self) -> None:
        """Start without any known call."""
        self.targets_of: dict[int, set[int]] = defaultdict(set)
        """The functions that a call goes to."""
        self._known: dict[tuple[int, int], set[int]] = defaultdict(set)
        self._handing: dict[int, bool] = {}
        self._by_receiver: dict[str, tuple[list[int], list[tuple[int, int]], list[int]]] = {}
        self.above_training: set[int] = set()
        """The functions above a loop that trains: their callers are looked for among methods of any object."""

    def edge(self, function: int, call: int, how: int) -> None:
        """Record that a call goes to a function."""
        self.targets_of[call].add(function)
        known = self._known[function, how]
        if call not in known:
            known.add(call)
            self.put(("edges", function), frozenset([(call << 2) | how]))

    def targets(self, functions: Value, args: list[Value] | None) -> tuple[dict[tuple[int, int], Receiver | None], set[int]]:
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
                if not callable_ and args and self.is_module(fields[1]):
                    made |= self.tensor_of(args)
        return found, made

    @staticmethod
    def _add_bound(found: dict[tuple[int, int], Receiver | None], function: int, receiver: Receiver) -> None:
        # A method bound to several objects has no known object.
        known = found.get((function, BOUND), receiver)
        found[function, BOUND] = receiver if known == receiver else None

    def callvalue(
        self, functions: Value, call: int | None, how: int | None = None, args: list[Value] | None = None, depth: int = 0
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
                if args and not value:
                    # Layers of torch alone.
                    value |= self.tensor_of(args)
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
        return ON_HOST if HOST_TENSOR in homes else SOME_TENSOR

    def instantiate(self, function: int, call: int | None, how: int, receiver: Receiver | None = None) -> Value:
        """What a function returns, its summary with the arguments of a call and the class of the receiver inserted."""
        summary = self.get(("returns", function))
        atoms = self.atoms
        if atoms.symbolic.isdisjoint(summary) and atoms.selves.isdisjoint(summary):
            # What it yields of an argument is another thing for each call.
            is_own = call is not None and how != UNKNOWN and self._hands_on(function)
            return frozenset([atoms.atom("gen", function, call, how)]) if is_own else summary
        value: set[int] = set()
        for one in summary:
            if one in atoms.selves and receiver is not None:
                value.add(self._received(one, receiver))
            elif one not in atoms.symbolic:
                value.add(one)
            else:
                value |= self._put_in(one, function, call, how)
        if DEVICE in value:
            value.discard(TENSOR)
            value.discard(IF_TENSOR)
        return frozenset(value)

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

    def _put_in(self, symbol: int, function: int, call: int | None, how: int) -> Value:
        kind, key = self.atoms.of[symbol]
        module = self.module_of(key)
        row = module.nodes[key & MASK]
        if row[0] == "param" and (module.base | row[1]) == function:
            given = self.argument(call, function, how, row[2])
            return given if kind == "p" else self.tensor_part(given) if kind == "t" else NOTHING
        if self.is_symbolic:
            return frozenset([symbol])
        known = self.get(key)
        return known if kind != "t" else self.tensor_part(known)

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
        home = self.module_of(function)
        scope = home.scopes[function & MASK]
        module = self.module_of(call)
        row = module.nodes[call & MASK]
        for keyword, given in row[3]:
            if keyword == name:
                return module.base | given
        index = scope.params.index(name)
        place = self.place_of_argument(function, how, index)
        if place >= 0 and index < scope.positional:
            for position, given in enumerate(row[2][: place + 1]):
                if module.nodes[given][0] == "star" or position == place:
                    return module.base | given
        return None

    def place_of_argument(self, function: int, how: int, index: int) -> int:
        """The place among the positional arguments of a call that a parameter takes."""
        if how == BOUND:
            return index - 1
        if how == LATER and function not in self.bound:
            return index + 1
        return index

    def callers(self, function: int) -> Value:
        """Question ``("callers", function)``: examine the calls that may go to it; they are recorded as its edges.

        It examines calls through plain names, names of modules, and ``self`` of its own classes; methods of other
        objects only above a loop that trains. Calls of functions that a step reaches are found anyway.
        """
        names = self._names_of_function(function)
        owner = self.owner.get(function)

        def look() -> None:
            for name in sorted(names):
                plain, own, other = self._split(name)
                for call in plain:
                    self.get(("to", call))
                if owner is not None:
                    for of, call in own:
                        if owner in self.order(of) or self._is_left_to(owner, of, name):
                            self.get(("to", call))
                if function in self.above_training and (name in EVERYBODYS or len(self.calls.get(name, ())) > CALLERS):
                    other = [call for call in other if owner is not None and self._is_of_made(call, owner)]
                if function in self.above_training:
                    for call in other:
                        self.get(("to", call))

        self.without_reader(look)
        return NOTHING

    def _is_of_made(self, call: int, owner: int) -> bool:
        """Whether a method is called on an object whose construction from a named class is visible: ``trainer =
        Trainer(…)``, ``trainer.fit(…)``."""
        module = self.module_of(call)
        function = module.nodes[module.nodes[call & MASK][1]]
        row = module.plain(function[1]) if function[0] == "attr" else ("",)
        if row[0] == "free":
            bound = module.scopes[0].bindings.get(row[2], ())
            row = module.plain(bound[-1]) if bound else row
        if row[0] != "call":
            return False
        below = self.below(owner)
        if module.last_name(row[1]) in {self.module_of(one).scopes[one & MASK].name for one in below}:
            return True
        # ``make = TRAINERS[task]`` before ``trainer = make(…)``.
        maker = module.plain(row[1])
        return maker[0] == "item" and any(fields[1] in below for fields in self.atoms.kinds(self.get(module.base | row[1]), "c"))

    def _is_left_to(self, owner: int, base: int, name: str) -> bool:
        """Whether a class overrides a method that its base class calls and does not set as an attribute."""
        return base in self.order(owner) and not any((one, name) in self.own_writes for one in self.order(base))

    def calls_on_objects(self, function: int) -> list[int]:
        """The calls of a method's name on objects that are still unknown; none if there are too many to examine."""
        if function not in self.owner:
            return []
        names = self._names_of_function(function) - {"__init__"}
        found = [call for name in sorted(names) if len(self.calls.get(name, ())) <= CALLERS for call in self._split(name)[2]]
        return found + self._calls_of_base(function) if self.module_of(function).scopes[function & MASK].name == "__init__" else found

    def _calls_of_base(self, function: int) -> list[int]:
        """The calls of ``super().__init__`` in subclasses of the constructor's class."""
        derived = set(self.below(self.owner[function]))
        return [call for call in self.calls.get("__init__", ()) if self._owner_around(call) in derived]

    def _owner_around(self, call: int) -> int | None:
        module = self.module_of(call)
        return self.owner.get(module.base | module.table.sites[call & MASK].scope)

    def _names_of_function(self, function: int) -> set[str]:
        module = self.module_of(function)
        scope = module.scopes[function & MASK]
        names = {scope.name}
        owner = self.owner.get(function)
        if owner is not None and scope.name in _IMPLICIT:
            classes: set[str] = set()
            for one in self.below(owner):
                name = self.module_of(one).scopes[one & MASK].name
                classes |= {name} | self.aliases.get(name, set())
            if scope.name in ("__init__", "__new__"):
                names |= classes
            else:
                for name in classes:
                    for call in self.calls.get(name, ()):
                        names |= self.names_of(call)
        for name in list(names):
            names |= self.aliases.get(name, set())
        if scope.parent >= 0 and module.scopes[scope.parent].kind == "def":
            names.add(f"(){module.scopes[scope.parent].name}")
        return names

    def _split(self, name: str) -> tuple[list[int], list[tuple[int, int]], list[int]]:
        """The calls of a name: through names and modules; on ``self``, with the class; on other objects."""
        known = self._by_receiver.get(name)
        if known is not None:
            return known
        plain: list[int] = []
        own: list[tuple[int, int]] = []
        other: list[int] = []
        for call in self.calls.get(name, ()):
            module = self.module_of(call)
            function = module.nodes[module.nodes[call & MASK][1]]
            if function[0] != "attr":
                plain.append(call)
                continue
            owner = self.class_of_self(module, function[1])
            if owner is not None:
                own.append((owner, call))
                continue
            (plain if self._names_module(module, function[1]) else other).append(call)
        self._by_receiver[name] = (plain, own, other)
        return plain, own, other

    @staticmethod
    def _names_module(module: Module, number: int) -> bool:
        row = module.plain(number)
        if row[0] == "free":
            bound = module.scopes[0].bindings.get(row[2])
            if bound:
                row = module.nodes[bound[0]]
        return row[0] in ("imp", "impf", "class")

    def goes_to(self, call: int) -> Value:
        """Question ``("to", call)``: record where a call goes, without evaluating its arguments."""
        module = self.module_of(call)
        row = module.nodes[call & MASK]
        if not self._may_go_somewhere(module, row[1]):
            return NOTHING
        functions = self.get(module.base | row[1])
        outside = any(one >= FIRST and self.atoms.of[one][0] in ("x", "partial", "d") for one in functions)
        called = module.nodes[row[1]]
        if outside or not functions or (called[0] == "attr" and called[2] == "apply"):
            self.get(call)
        else:
            for function, bound in self.targets(functions, [])[0]:
                self.edge(function, call, abs(bound))
        return NOTHING

    def _may_go_somewhere(self, module: Module, function: int) -> bool:
        """Whether a function expression may be one of the project's, or one of another package that calls those: most
        methods belong to tensors."""
        row = module.nodes[function]
        if row[0] != "attr" or row[2] in self._names_of_members:
            return True
        while row[0] == "attr":
            row = module.plain(row[1])
        return row[0] == "free" or row[0] in ("imp", "impf", "class")

    @cached_property
    def _names_of_members(self) -> frozenset[str]:
        """The names that the project gives to members of its modules, classes and objects."""
        names = {"apply", "module", *self.given, *self.other_writes, *(name for _, name in self.own_writes)}
        for module in self.live:
            for scope in module.scopes:
                if scope.kind != "def":
                    names.update(scope.bindings, scope.annotations)
        return frozenset(names)
