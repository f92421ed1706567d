"""The data loaders of a program: where they are made, which loops go through them, and what these do.

A *pass* is a loop over a loader, or an ``iter`` of one. It trains where it is a training step or goes into one; it is repeated where a
loop runs it again and again for the same loader: a loop that the loader is made outside of.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

from ldlm_lint.code.table import line_of
from ldlm_lint.concepts.handed import edges_of
from ldlm_lint.concepts.loader_arms import LoaderArms
from ldlm_lint.concepts.loader_options import Loader
from ldlm_lint.concepts.training import Training
from ldlm_lint.program.arms import Arms
from ldlm_lint.program.atoms import FIRST, MASK, Value
from ldlm_lint.program.calls import UNKNOWN
from ldlm_lint.program.modules import Module
from ldlm_lint.program.queries import Queries
from ldlm_lint.vocabulary.loaders import LOADERS

_CLIMB = 400
"""Places above a pass or a loader that are looked at."""


class Pass(NamedTuple):
    """A pass: the module and scope that it stands in, the expression that is gone through, the loop (-1: an ``iter``), and the loop around it.

    ``is_draw``: no pass of its own, a training step takes from what a generator gives by ``next``.
    """

    module: Module
    scope: int
    value: int
    loop: int
    around: int
    place: int
    is_draw: bool = False

    @property
    def function(self) -> int:
        """The key of the function that it stands in."""
        return self.module.base | self.scope


class Frame(NamedTuple):
    """Where something happens, seen from one of the functions that lead there: the function (key) and the innermost loop, -1 for none."""

    function: int
    loop: int


class Loaders:
    """The loaders of a program and the passes through them."""

    def __init__(self, ask: Queries, training: Training) -> None:
        self.ask = ask
        self.program = ask.program
        self.training = training

    @cached_property
    def made(self) -> list[Loader]:
        """All loaders, by the calls that make them."""
        found: dict[int, Loader] = {}
        for call, name in self.ask.calls_of(LOADERS):
            if call not in found and not self._is_call_of_base(call):
                found[call] = Loader(call, name, self._class_of(call))
        return list(found.values())

    def _class_of(self, call: int) -> int:
        module = self.program.module_of(call)
        value = self.program.ask(module.base | module.nodes[call & MASK][1])
        return next((fields[1] for fields in self.program.atoms.kinds(value, "c") if self.program.outside_of(fields[1]) & LOADERS), 0)

    def _is_call_of_base(self, call: int) -> bool:
        """``DataLoader.__init__(self, …)`` in a class makes no loader of its own."""
        module = self.program.module_of(call)
        function = module.nodes[module.nodes[call & MASK][1]]
        return function[0] == "attr" and function[2] == "__init__"

    @cached_property
    def _by_object(self) -> dict[int, list[Pass]]:
        """The passes by the call that made what is gone through."""
        found: dict[int, list[Pass]] = defaultdict(list)
        for one in self._all_passes():
            for call in self._objects(one.module.base | one.value, set()):
                found[call].append(one)
        return found

    def _all_passes(self) -> Iterator[Pass]:
        for module in self.program.live:
            for number, loop in enumerate(module.table.loops):
                if loop.kind != "while":
                    yield Pass(module, loop.scope, loop.value, number, loop.parent, loop.place)
            yield from self._handed_on(module)
        for module, call, value in self._given_to("iter"):
            if not self._is_looped_over(module, call):
                site = module.table.sites[call]
                yield Pass(module, site.scope, value, -1, site.loop, site.place)

    def _given_to(self, name: str) -> Iterator[tuple[Module, int, int]]:
        """The calls of ``iter`` or ``next``, also as ``x.__iter__()``, with what is iterated over: module, call and value."""
        for call in self.program.calls.get(name, ()):
            module = self.program.module_of(call)
            row = module.nodes[call & MASK]
            if (len(row[2]) == 1 or (row[2] and name == "next")) and module.nodes[row[1]][0] != "attr":
                # With a second argument ``iter`` calls what it is given.
                yield module, call & MASK, row[2][0]
        for call in self.program.calls.get(f"__{name}__", ()):
            module = self.program.module_of(call)
            row = module.nodes[call & MASK]
            function = module.nodes[row[1]]
            if function[0] == "attr" and not row[2] and module.last_name(function[1]) != "()super":
                yield module, call & MASK, function[1]

    @staticmethod
    def _handed_on(module: Module) -> Iterator[Pass]:
        """``yield from loader``."""
        looped = {loop.value for loop in module.table.loops}
        for number, scope in enumerate(module.scopes):
            for event in scope.events if scope.yields else ():
                row = module.nodes[event[1]]
                if event[0] == "yield" and row[0] == "elem" and row[1] not in looped:
                    yield Pass(module, number, row[1], -1, event[2], event[4])

    @staticmethod
    def _is_looped_over(module: Module, number: int) -> bool:
        return any(loop.value == number for loop in module.table.loops)

    def _objects(self, key: int, seen: set[int], *, of_iterators: bool = False) -> set[int]:
        """The calls that made the objects of other packages that an expression goes through, also inside of ``enumerate`` and the like.

        Those that an iterator goes through already are others: a loop over it begins no pass.
        """
        found: set[int] = set()
        if key in seen:
            return found
        seen.add(key)
        for one in self.program.ask(key):
            fields = self.program.atoms.of[one] if one >= FIRST else ("",)
            if fields[0] == "o" and not of_iterators:
                found.add(fields[2])
            elif fields[0] == "view" and fields[1] == "iter" and of_iterators:
                found |= self._objects(fields[2], set())
            elif fields[0] == "view" and fields[1] in ("pass", "enum"):
                found |= self._objects(fields[2], seen, of_iterators=of_iterators)
            elif fields[0] == "view" and fields[1] == "zip":
                module = self.program.module_of(fields[2])
                for argument in module.nodes[fields[2] & MASK][2]:
                    found |= self._objects(module.base | argument, seen, of_iterators=of_iterators)
        return found

    def passes(self, call: int) -> list[Pass]:
        """The passes through the loader that a call makes."""
        return self._by_object.get(call, [])

    def trains(self, call: int) -> Pass | None:
        """A pass through a loader that trains on its batches."""
        return next((one for one in self.passes(call) if self._trains(one, call, set())), None)

    def trains_through(self, call: int, giver: int) -> Pass | None:
        """A pass that trains on the batches of the loader that one call of the function around it gives, or in that function itself."""
        arms = LoaderArms(Arms(self.ask), self._may_be, self._goes_on_with, giver)
        own = self.program.function_of(call)
        for one in self.passes(call):
            if self._trains(one, call, set()) and (one.function == own or arms.may_come(one.module.base | one.value, call)):
                return one
        return None

    def may_go_through(self, module: Module, line: int, call: int) -> bool:
        """Whether the loop on a line may go through the loader that a call makes, by the arms that lead there; so may one that is not known."""
        values = [loop.value for loop in module.table.loops if line_of(loop.place) == line and loop.kind != "while"]
        return not values or any(self._arms.may_come(module.base | value, call) for value in values)

    @cached_property
    def _arms(self) -> LoaderArms:
        return LoaderArms(Arms(self.ask), self._may_be, self._goes_on_with)

    def _may_be(self, key: int, loader: int) -> bool:
        value = self.program.ask(key)
        return not value or self._may_be_inside(value, loader, 1)

    def _goes_on_with(self, key: int, loader: int) -> bool:
        return loader in self._objects(key, set()) or bool(self._generators(key, set()))

    def _trains(self, one: Pass, loader: int, seen: set[int]) -> bool:
        function = one.function
        if not self._arms.may_come(one.module.base | one.value, loader):
            return False
        if one.loop >= 0 and self._is_step(one.module, function, one.loop):
            return True
        if one.loop < 0 and (one.is_draw or self._feeds_step(one)):
            return True
        if function in seen:
            return False
        seen.add(function)
        return any(self._trains(two, loader, seen) for two in self._consumers(one, loader))

    def _is_step(self, module: Module, function: int, outer: int) -> bool:
        """Whether a loop is a training step, or one stands in it."""
        for step in self.training.steps.get(function, ()):
            loop = -1 if step is None else step
            while loop >= 0:
                if loop == outer:
                    return True
                loop = module.table.loops[loop].parent
        return False

    def _feeds_step(self, one: Pass) -> bool:
        """Whether a training step takes the batches of such an iterator, by ``next`` or in a loop."""
        made = self._iterated(one.module.base | one.value)
        if any(made & self._iterators(module.base | value) for module, _, value in self._drawn_in_steps):
            return True
        for function in self.training.steps:
            module = self.program.module_of(function)
            for number, row in enumerate(module.table.loops):
                is_step = module.base | row.scope == function and self._is_step(module, function, number)
                if is_step and row.kind != "while" and made & self._iterators(module.base | row.value):
                    return True
        return False

    @cached_property
    def _drawn_in_steps(self) -> list[tuple[Module, int, int]]:
        """The calls of ``next`` that run in training steps, with what they are given."""
        return [one for one in self._given_to("next") if self._is_in_step(one[0], one[1])]

    def _is_in_step(self, module: Module, call: int) -> bool:
        site = module.table.sites[call]
        function = module.base | site.scope
        loops = self.training.reached.get(function)
        return loops is not None and self.training.is_inside(module, site.loop, -1, function, loops)

    def _iterated(self, key: int) -> set[int]:
        return self._objects(key, set())

    def _iterators(self, key: int) -> set[int]:
        """The calls that made the loaders whose running passes an expression goes on with."""
        return self._objects(key, set(), of_iterators=True)

    def _consumers(self, one: Pass, loader: int) -> list[Pass]:
        """The loops over what the generator gives that a pass stands in, or over the objects whose ``__iter__`` it is, for one loader."""
        function = one.function
        module = self.program.module_of(function)
        scope = module.scopes[function & MASK]
        if not scope.yields and scope.name not in ("__iter__", "__next__"):
            return []
        parameter = self._parameter(one.module, one.value, 0)
        if not parameter:
            return self._by_generator.get(function, [])
        self.program.ask(("callers", function))
        calls: dict[int, bool] = {}
        for edge in sorted(self.program.ask(("edges", function))):
            node = self.program.argument_node(edge >> 2, function, edge & 3, parameter) if edge & 3 != UNKNOWN else None
            calls[edge >> 2] = node is None or self._may_hold(node, loader)
        return [two for two in self._by_generator.get(function, []) if self._is_from(two, calls)]

    def _is_from(self, two: Pass, calls: dict[int, bool]) -> bool:
        """Whether a loop goes through what one of the calls gives that hold true; so may one of which that is not seen."""
        written = {call for call in self._calls_in(two.module, two.value, 0) if call in calls}
        if two.is_draw and not written:
            # Which of the program's iterators a ``next`` goes on with has to be seen.
            return False
        return any(calls[call] for call in written) if written else any(calls.values()) or not calls

    def _calls_in(self, module: Module, number: int, depth: int) -> set[int]:
        row = module.nodes[number]
        if depth > 12:
            return set()
        if row[0] == "call":
            inner = (self._calls_in(module, value, depth + 1) for value in row[2])
            return {module.base | number}.union(*inner)
        if row[0] == "copy":
            return self._calls_in(module, row[1], depth + 1)
        if row[0] == "phi":
            return set().union(*(self._calls_in(module, value, depth + 1) for value in row[1]))
        if row[0] == "attr" and (owner := self.program.class_of_self(module, row[1])) is not None:
            kept = [key & MASK for key in self.program.own_writes.get((owner, row[2]), ()) if self.program.module_of(key) is module]
            return set().union(*(self._calls_in(module, value, depth + 1) for value in kept))
        if row[0] == "free":
            bound = self.ask.bound_to(module, row)
            return set().union(*(self._calls_in(module, value & MASK, depth + 1) for value in bound))
        return set()

    @cached_property
    def _by_generator(self) -> dict[int, list[Pass]]:
        found: dict[int, list[Pass]] = defaultdict(list)
        for one in (*self._all_passes(), *self._draws()):
            for function in self._generators(one.module.base | one.value, set()):
                found[function].append(one)
        return found

    def _draws(self) -> Iterator[Pass]:
        for module, call, value in self._drawn_in_steps:
            site = module.table.sites[call]
            yield Pass(module, site.scope, value, -1, site.loop, site.place, is_draw=True)

    def _generators(self, key: int, seen: set[int]) -> set[int]:
        found: set[int] = set()
        if key in seen:
            return found
        seen.add(key)
        for one in sorted(self.program.ask(key)):
            fields = self.program.atoms.of[one] if one >= FIRST else ("",)
            if fields[0] == "gen":
                found.add(fields[1])
            elif fields[0] in ("i", "self"):
                for name in ("__iter__", "__next__"):
                    found.update(self.program.methods(fields[1], name, exact=fields[0] == "i"))
            elif fields[0] == "view" and fields[1] in ("pass", "enum"):
                found |= self._generators(fields[2], seen)
        return found

    def repeated(self, call: int) -> Pass | None:
        """A pass that runs again and again for the loader that a call makes."""
        if self._goes_on_by_itself(self._class_of(call)):
            return None
        made = self._loops_above_making(call)
        passes = self.passes(call)
        functions = {one.function for one in passes}
        if any(not functions.isdisjoint(self._begun_within(one)) for one in passes):
            return None
        return next((one for one in passes if self._is_repeated(one, call, made)), None)

    def _goes_on_by_itself(self, owner: int) -> bool:
        """Whether a class of the project has an ``__iter__`` that begins no pass of torch's loader: it goes on with one that it keeps."""
        for function in self.program.methods(owner, "__iter__") if owner else ():
            module = self.program.module_of(function)
            names = {module.last_name(module.nodes[call][1]) for call in module.scopes[function & MASK].calls}
            if names.isdisjoint({"__iter__", "iter"}):
                return True
        return False

    def _begun_within(self, one: Pass) -> set[int]:
        """The other functions that are called while a pass goes on: persistent workers serve one pass at a time."""
        loop = one.loop if one.loop >= 0 else one.around
        found: set[int] = set()
        for call in one.module.scopes[one.scope].calls if loop >= 0 else ():
            site = one.module.table.sites[call]
            if site.place > one.place and any(frame.loop == loop for frame in self._loops_of(Frame(one.function, site.loop))):
                self.program.ask(("to", one.module.base | call))
                found |= self.program.targets_of.get(one.module.base | call, set())
        return found - {one.function}

    def comes_again(self, call: int, loader: int) -> bool:
        """Whether a call runs again and again while there is one loader, by the call that makes that."""
        module = self.program.module_of(call)
        site = module.table.sites[call & MASK]
        made = self._loops_above_making(loader)
        frames = self._climb(Frame(module.base | site.scope, site.loop), None, 0)
        return any(loop not in made for frame in frames for loop in self._loops_of(frame))

    def _loops_above_making(self, call: int) -> set[Frame]:
        """The loops that a loader is made inside of, and so anew in each round."""
        module = self.program.module_of(call)
        site = module.table.sites[call & MASK]
        found: set[Frame] = set()
        for frame in self._climb(Frame(module.base | site.scope, site.loop), None, 0):
            found |= set(self._loops_of(frame))
        return found

    def _loops_of(self, frame: Frame) -> Iterator[Frame]:
        module = self.program.module_of(frame.function)
        loop = frame.loop
        while loop >= 0:
            yield Frame(frame.function, loop)
            loop = module.table.loops[loop].parent

    def _is_repeated(self, one: Pass, call: int, made: set[Frame]) -> bool:
        if not self._arms.may_come(one.module.base | one.value, call):
            return False
        frames = self._climb(Frame(one.function, one.around), one, call)
        return any(loop not in made and self._is_of_same(loop, one) for frame in frames for loop in self._loops_of(frame))

    def _is_of_same(self, frame: Frame, one: Pass) -> bool:
        """Whether a loop goes through the same loader in each round, and not through the next one of several."""
        module = self.program.module_of(frame.function)
        if module is not one.module:
            return True
        return not self._rests_on(module, one.value, module.table.loops[frame.loop].value, 0)

    def _rests_on(self, module: Module, number: int, iterable: int, depth: int) -> bool:
        """Whether an expression is, or is looked up by, an element of what a loop goes through."""
        row = module.nodes[number]
        kind = row[0]
        if depth > 12 or kind in ("const", "none", "param", "free"):
            return False
        if kind == "elem":
            return row[1] == iterable
        if kind in ("part", "copy", "attr", "enter"):
            return self._rests_on(module, row[1], iterable, depth + 1)
        if kind == "item":
            return any(self._rests_on(module, two, iterable, depth + 1) for two in row[1:3])
        if kind == "phi":
            return any(self._rests_on(module, two, iterable, depth + 1) for two in row[1])
        if kind == "call":
            return any(self._rests_on(module, two, iterable, depth + 1) for two in row[2])
        return kind == "op" and any(self._rests_on(module, two, iterable, depth + 1) for two in row[2:4])

    def _climb(self, frame: Frame, one: Pass | None, call: int) -> Iterator[Frame]:
        """A place, and those of the calls that lead there; of a pass those that hand on the loader."""
        seen = {frame}
        todo = [(frame, self._parameter(one.module, one.value, 0) if one is not None else "")]
        for two in self._consumers(one, call) if one is not None else ():
            if two.is_draw:
                # Each ``next`` goes on with the pass.
                continue
            todo += [(above, self._parameter(two.module, two.value, 0)) for above in (Frame(two.function, two.around),)]
        while todo and len(seen) < _CLIMB:
            at, parameter = todo.pop()
            yield at
            if one is not None and at == frame and len(todo) and self.program.module_of(at.function).scopes[at.function & MASK].yields:
                # What calls a generator is no place of its pass: who goes through it is.
                continue
            for above, name in self._callers(at.function, parameter, call):
                if above not in seen:
                    seen.add(above)
                    todo.append((above, name))

    def _callers(self, function: int, parameter: str, loader: int) -> Iterator[tuple[Frame, str]]:
        if function & MASK == 0:
            return
        for edge in edges_of(self.program, function):
            call, how = edge >> 2, edge & 3
            module = self.program.module_of(call)
            site = module.table.sites[call & MASK]
            name = ""
            if parameter and how != UNKNOWN:
                node = self.program.argument_node(call, function, how, parameter)
                if node is not None:
                    if not self._may_hold(node, loader):
                        continue
                    name = self._parameter(self.program.module_of(node), node & MASK, 0)
            yield Frame(module.base | site.scope, site.loop), name

    def _may_hold(self, node: int, loader: int) -> bool:
        """Whether a value may be a loader or something with it inside; of what is not known anything may be."""
        if loader in self._objects(node, set()):
            return True
        return self._may_be_inside(self.program.ask(node), loader, 0)

    def _may_be_inside(self, value: Value, loader: int, depth: int) -> bool:
        atoms = self.program.atoms
        fields = [atoms.of[one] for one in value if one >= FIRST]
        if any(one[0] == "o" and one[2] == loader for one in fields):
            return True
        if depth > 3 or any(one[0] in ("i", "self", "c", "m", "view", "gen", "pair", "prep") and not self._is_loader(one) for one in fields):
            return True
        containers = [one[1] for one in fields if one[0] == "d"]
        if containers:
            inner = [self.program.ask(("content", place, None)) for place in containers]
            return any(not each or self._may_be_inside(each, loader, depth + 1) for each in inner)
        # Another object is no loader of this call; a value without one is not known.
        return not any(one[0] in ("o", "i", "self") for one in fields) and depth == 0

    def _is_loader(self, fields: tuple[Any, ...]) -> bool:
        return fields[0] in ("i", "self") and bool(LOADERS & self.program.outside_of(fields[1]))

    def _parameter(self, module: Module, number: int, depth: int) -> str:
        """The parameter that what is gone through comes from, directly or inside of it; empty where there is none."""
        row = module.nodes[number]
        if depth > 12:
            return ""
        if row[0] == "param":
            return str(row[2])
        if row[0] in ("copy", "attr", "item", "enter", "star"):
            return self._parameter(module, row[1], depth + 1)
        if row[0] == "call" and row[2] and module.last_name(row[1]) != "zip":
            return self._parameter(module, row[2][0], depth + 1)
        if row[0] == "phi":
            names = {self._parameter(module, one, depth + 1) for one in row[1]}
            return names.pop() if len(names) == 1 else ""
        return ""
