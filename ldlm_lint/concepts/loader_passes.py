"""The passes over data loaders: where loaders are made, and which loops, iterators and generators go through which of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any, NamedTuple

from ldlm_lint.concepts.loader_frameworks import LoaderFrameworks
from ldlm_lint.concepts.loader_options import Loader
from ldlm_lint.concepts.reach import Reach
from ldlm_lint.concepts.taken_branches import TakenBranches
from ldlm_lint.program.atoms import FIRST, MASK, Value
from ldlm_lint.program.calls import UNKNOWN
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Call
from ldlm_lint.program.modules import Module
from ldlm_lint.vocabulary.loaders import LOADERS

_MOST_BEHIND = 60
"""Expressions behind one that is gone through that are looked at."""


class Pass(NamedTuple):
    """A pass: the module and scope that it is in, the expression that is iterated over, the loop (-1: an ``iter``), and
    the loop around it.

    ``is_draw``: not a separate pass, a training step takes from a generator by ``next``. ``framework``: one makes it
    for each epoch, ``train`` or ``evaluate``.
    """

    module: Module
    scope: int
    value: int
    loop: int
    around: int
    place: int
    is_draw: bool = False
    framework: str = ""

    @property
    def function(self) -> int:
        """The key of the function that it is in."""
        return self.module.base | self.scope


class LoaderPasses(Concept):
    """The loaders of a program and the passes through them."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)

    @cached_property
    def made(self) -> list[Loader]:
        """All loaders, by the calls that make them."""
        found: dict[int, Loader] = {}
        for call, name in self.ask.calls_of(LOADERS):
            if call not in found and not self._is_call_of_base(call):
                found[call] = Loader(call, name, self.class_of(call))
        return list(found.values())

    def class_of(self, call: int) -> int:
        """The class of the project (key) that a loader is of; 0 for another package's."""
        module = self.program.module_of(call)
        value = self.program.ask(module.base | module.nodes[call & MASK][1])
        classes = [fields for fields in (*self.program.atoms.kinds(value, "c"), *self.program.atoms.kinds(value, "self"))]
        return next((fields[1] for fields in classes if self.program.outside_of(fields[1]) & LOADERS), 0)

    def _is_call_of_base(self, call: int) -> bool:
        """``DataLoader.__init__(self, …)`` in a class creates no separate loader."""
        module = self.program.module_of(call)
        function = module.nodes[module.nodes[call & MASK][1]]
        return function[0] == "attr" and function[2] == "__init__"

    @cached_property
    def _by_object(self) -> dict[int, list[Pass]]:
        """The passes by the call that created the iterable."""
        found: dict[int, list[Pass]] = defaultdict(list)
        for one in self._all_passes():
            for call in self.objects(one.module.base | one.value, set()):
                found[call].append(one)
        for taken in LoaderFrameworks(self.program).taken():
            how = "train" if taken.trains else "evaluate"
            one = Pass(taken.module, taken.scope, taken.value, -1, taken.loop, taken.place, framework=how)
            for call in self._held(taken.module.base | taken.value):
                found[call].append(one)
        return found

    def _held(self, key: int) -> set[int]:
        """The calls that created the iterables of an expression, also in a list or dictionary of several."""
        found = self.objects(key, set())
        for fields in self.program.atoms.kinds(self.program.ask(key), "d"):
            inner = self.program.ask(("content", fields[1], None))
            found |= {one[2] for one in self.program.atoms.kinds(inner, "o")}
        # ``return self.accelerator.prepare(loader)``
        return found or self._calls_behind(key, set()) & {loader.call for loader in self.made}

    def _all_passes(self) -> Iterator[Pass]:
        for module in self.program.live:
            for number, loop in enumerate(module.table.loops):
                if loop.kind != "while":
                    yield Pass(module, loop.scope, self._begun(module, loop.value), number, loop.parent, loop.place)
            yield from self._handed_on(module)
        for module, call, value in (*self._given_to("iter"), *self._cycled()):
            if not self._is_looped_over(module, call):
                site = module.table.sites[call]
                yield Pass(module, site.scope, value, -1, site.loop, site.place)

    def _given_to(self, name: str) -> Iterator[tuple[Module, int, int]]:
        """The calls of ``iter`` or ``next``, also as ``x.__iter__()``, with the iterable: module, call and value."""
        for call in self.program.calls.get(name, ()):
            module = self.program.module_of(call)
            row = module.nodes[call & MASK]
            if (len(row[2]) == 1 or (row[2] and name == "next")) and module.nodes[row[1]][0] != "attr":
                # With a second argument ``iter`` calls its first argument.
                yield module, call & MASK, row[2][0]
        for call in self.program.calls.get(f"__{name}__", ()):
            module = self.program.module_of(call)
            row = module.nodes[call & MASK]
            function = module.nodes[row[1]]
            if function[0] == "attr" and not row[2] and module.last_name(function[1]) != "()super":
                yield module, call & MASK, function[1]

    def _cycled(self) -> Iterator[tuple[Module, int, int]]:
        """The calls of ``itertools.cycle``, which iterates over its argument once."""
        for call, _ in self.ask.calls_of({"itertools.cycle"}):
            module = self.program.module_of(call)
            row = module.nodes[call & MASK]
            if len(row[2]) == 1:
                yield module, call & MASK, row[2][0]

    @staticmethod
    def _begun(module: Module, number: int) -> int:
        """The iterable of a loop: a loop over ``iter(loader)`` itself begins a pass."""
        row = module.nodes[number]
        is_iter = row[0] == "call" and module.last_name(row[1]) == "iter" and len(row[2]) == 1 and module.nodes[row[1]][0] != "attr"
        return int(row[2][0]) if is_iter else number

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

    def objects(self, key: int, seen: set[int], *, of_iterators: bool = False) -> set[int]:
        """The calls that made the objects of other packages that an expression iterates over, also inside of
        ``enumerate`` and the like.

        Objects behind a running iterator are excluded: a loop over it begins no pass.
        """
        found: set[int] = set()
        if key in seen:
            return found
        seen.add(key)
        value = self.program.ask(key)
        if not value and (given := self._wrapped(key)):
            return self.objects(given, seen, of_iterators=of_iterators)
        for one in value:
            fields = self.program.atoms.of[one] if one >= FIRST else ("",)
            if fields[0] == "o" and not of_iterators:
                found.add(fields[2])
            elif fields[0] == "view" and fields[1] == "iter" and of_iterators:
                found |= self.objects(fields[2], set())
            elif fields[0] == "view" and fields[1] in ("pass", "enum"):
                found |= self.objects(fields[2], seen, of_iterators=of_iterators)
            elif fields[0] == "view" and fields[1] == "zip":
                module = self.program.module_of(fields[2])
                for argument in module.nodes[fields[2] & MASK][2]:
                    found |= self.objects(module.base | argument, seen, of_iterators=of_iterators)
        return found

    def _wrapped(self, key: int) -> int:
        """The first argument of an unknown function or class, or the one at the position of a result's part: it returns
        the loader in another form."""
        module = self.program.module_of(key)
        row, index = module.nodes[module.uncopied(key & MASK)], 0
        if row[0] == "part":
            row, index = module.plain(row[1]), row[2]
        if row[0] != "call" or not 0 <= index < len(row[2]):
            return 0
        return module.base | int(row[2][index]) if module.nodes[row[2][index]][0] != "star" else 0

    def of(self, call: int) -> list[Pass]:
        """The passes through the loader that a call makes, in a program that loads the call: those of its own module first,
        then those of modules that import each other.

        What two scripts hand to a helper that both share is one value there: a loop of the other script is none of theirs,
        and where an import by a computed name may load both, it is the last one to name.
        """
        module, together = self.program.module_of(call), self.program.together
        found = [one for one in self._by_object.get(call, []) if together.may_share_program(module, one.module)]
        near = together.programs_of(module)
        return sorted(found, key=lambda one: (one.module is not module, one.module.index not in near))

    @cached_property
    def drawn_in_steps(self) -> list[tuple[Module, int, int]]:
        """The calls of ``next`` that run in training steps, with their arguments."""
        return [one for one in self._given_to("next") if self.code[Reach].is_inside(Call(self.code, one[0].base | one[1]))]

    def consumers(self, one: Pass, loader: int) -> list[Pass]:
        """For one loader: the loops over the generator that contains a pass, or over the objects whose ``__iter__`` it
        is."""
        function = one.function
        module = self.program.module_of(function)
        scope = module.scopes[function & MASK]
        if not scope.yields and scope.name not in ("__iter__", "__next__"):
            return []
        parameter = "" if self.program.function_of(loader) == function else self.parameter(one.module, one.value, 0)
        if not parameter:
            return [two for two in self._by_generator.get(function, []) if self._may_lead_to(two, function, loader)]
        calls: dict[int, bool] = {}
        for edge in self.program.callers(function):
            node = self.program.argument_node(edge.call, function, edge.how, parameter) if edge.how != UNKNOWN else None
            calls[edge.call] = node is None or self.may_hold(node, loader)
        return [two for two in self._by_generator.get(function, []) if self._is_from(two, calls)]

    def _may_lead_to(self, two: Pass, function: int, loader: int) -> bool:
        """Whether one of the calls of a generator function that a loop goes through may come to the loader that is made in it."""
        calls = {edge.call for edge in self.program.callers(function)}
        written = (
            self._calls_behind(two.module.base | two.value, set()) & calls
            if self.program.function_of(loader) == function
            else set()
        )
        return not written or any(self.code[TakenBranches].may_lead((loader, call)) for call in sorted(written))

    def _is_from(self, two: Pass, calls: dict[int, bool]) -> bool:
        """Whether a loop iterates over the result of one of the calls; True also if that is unknown."""
        written = {call for call in self._calls_behind(two.module.base | two.value, set()) if call in calls}
        if two.is_draw and not written:
            # The iterator that a ``next`` continues must be known.
            return False
        return any(calls[call] for call in written) if written else any(calls.values()) or not calls

    def calls_behind(self, key: int) -> set[int]:
        """The calls that an expression comes from."""
        return self._calls_behind(key, set())

    def _calls_behind(self, key: int, seen: set[int]) -> set[int]:
        """The calls that an expression comes from, through names, parameters, attributes of ``self``, tuples, and arguments of other calls."""
        if key in seen or len(seen) > _MOST_BEHIND:
            return set()
        seen.add(key)
        module = self.program.module_of(key)
        row = module.nodes[key & MASK]
        found = {key} if row[0] == "call" else set()
        return found.union(*(self._calls_behind(one, seen) for one in self._behind(module, key & MASK)))

    def _behind(self, module: Module, number: int) -> Iterable[int]:
        row, base = module.nodes[number], module.base
        if row[0] == "call":
            return [*(base | one for one in row[2]), *self._returned(base | number)]
        if row[0] in ("copy", "enter"):
            return [base | row[1]]
        if row[0] == "phi":
            return [base | one for one in row[1]]
        if row[0] == "part":
            return self._parts(module, row[1], row[2])
        if row[0] == "param":
            return [node for _, node in self.program.given_for(base | row[1], row[2])]
        if row[0] == "attr" and (owner := self.program.class_of_self(module, row[1])) is not None:
            return self.program.own_writes.get((owner, row[2]), ())
        return self.ask.bound_to(module, row) if row[0] == "free" else ()

    def _returned(self, call: int) -> Iterator[int]:
        """The results of the project's functions that a call goes to."""
        for target in sorted(self.program.targets_of.get(call, ())):
            home = self.program.module_of(target)
            yield from (home.base | value for value, _ in home.scopes[target & MASK].returns if value)

    def _parts(self, module: Module, number: int, index: int) -> Iterator[int]:
        """The values at a position of a tuple, written here or returned by a function of the project."""
        row = module.plain(number)
        if row[0] == "seq" and 0 <= index < len(row[2]):
            yield module.base | row[2][index]
        elif row[0] == "call":
            for target in sorted(self.program.targets_of.get(module.base | number, ())):
                home = self.program.module_of(target)
                for value, _ in home.scopes[target & MASK].returns:
                    given = home.plain(value) if value else ("",)
                    if given[0] == "seq" and 0 <= index < len(given[2]):
                        yield home.base | given[2][index]

    @cached_property
    def _by_generator(self) -> dict[int, list[Pass]]:
        found: dict[int, list[Pass]] = defaultdict(list)
        for one in (*self._all_passes(), *self._draws()):
            for function in self.generators(one.module.base | one.value, set()):
                found[function].append(one)
        return found

    def _draws(self) -> Iterator[Pass]:
        for module, call, value in self.drawn_in_steps:
            site = module.table.sites[call]
            yield Pass(module, site.scope, value, -1, site.loop, site.place, is_draw=True)

    def generators(self, key: int, seen: set[int]) -> set[int]:
        """The generator functions, and the ``__iter__`` of the project's classes, that going through an expression runs."""
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
            elif fields[0] == "view" and fields[1] in ("pass", "enum", "iter"):
                found |= self.generators(fields[2], seen)
        return found

    def may_hold(self, node: int, loader: int) -> bool:
        """Whether a value may be a loader or contain one; unknown values may."""
        if loader in self.objects(node, set()):
            return True
        return self.may_be_inside(self.program.ask(node), loader, 0)

    def may_be_inside(self, value: Value, loader: int, depth: int) -> bool:
        """The same for a known value, ``depth`` containers deep."""
        atoms = self.program.atoms
        fields = [atoms.of[one] for one in value if one >= FIRST]
        if any(one[0] == "o" and one[2] == loader for one in fields):
            return True
        if depth > 3 or any(one[0] in ("i", "self", "c", "m", "view", "gen", "pair", "prep") and not self._is_loader(one) for one in fields):
            return True
        containers = [one[1] for one in fields if one[0] == "d"]
        if containers:
            inner = [self.program.ask(("content", place, None)) for place in containers]
            return any(not each or self.may_be_inside(each, loader, depth + 1) for each in inner)
        # Another object is not a loader of this call; a value without an object is unknown.
        return not any(one[0] in ("o", "i", "self") for one in fields) and depth == 0

    def _is_loader(self, fields: tuple[Any, ...]) -> bool:
        return fields[0] in ("i", "self") and bool(LOADERS & self.program.outside_of(fields[1]))

    def parameter(self, module: Module, number: int, depth: int) -> str:
        """The parameter that the iterable comes from, directly or inside it; empty if there is none."""
        row = module.nodes[number]
        if depth > 12:
            return ""
        if row[0] == "param":
            return str(row[2])
        if row[0] in ("copy", "attr", "item", "enter", "star"):
            return self.parameter(module, row[1], depth + 1)
        if row[0] == "call" and row[2] and module.last_name(row[1]) != "zip":
            return self.parameter(module, row[2][0], depth + 1)
        if row[0] == "phi":
            names = {self.parameter(module, one, depth + 1) for one in row[1]}
            return names.pop() if len(names) == 1 else ""
        return ""
