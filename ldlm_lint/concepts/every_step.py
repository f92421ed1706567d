"""What surely runs in every step of a training: a confirmed chain of calls leads from the step to it.

A call confirms its target if some program that reaches the step loads the target's file, builds the target's class where
it is a method, and passes the object or function where the target is called through a parameter:

    for batch in loader:                     # the programs of this loop: train_tokens.py
        loss = net(batch)                    # both LatentNet.forward and PackedTransformer.forward by its values,
        loss.backward()                      # but only sample.py loads and builds a PackedTransformer

Nor does code run in every step that is behind an early return, an interval, or an option that is off.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import NamedTuple

from ldlm_lint.concepts.class_builders import ClassBuilders
from ldlm_lint.concepts.programs import Programs
from ldlm_lint.concepts.rare_places import RarePlaces
from ldlm_lint.concepts.training import Training
from ldlm_lint.program.atoms import MASK, NOTHING, Value
from ldlm_lint.program.calls import UNKNOWN
from ldlm_lint.program.modules import Module


class Chain(NamedTuple):
    """How a step leads to a function: the function of the step, and the calls from there on, the last one first."""

    step: int
    calls: tuple[int, ...]


class Edge(NamedTuple):
    """A call and a function that it may go to; the programs (a mask) in which it surely does, or why that is a guess."""

    call: int
    target: int
    programs: int
    guess: str = ""


_FAMILIES = 10
"""Functions that one call may go to from which on each is a guess: of ten model families a run trains one. No fact says
which, but for those that a configuration of the project chooses."""


class EveryStep:
    """The chains of a program; ``is_off`` tells whether code under a guard of a function waits for an option that
    no launch sets."""

    def __init__(self, training: Training, rare: RarePlaces, builders: ClassBuilders, is_off: Callable[[Module, int, int], bool]) -> None:
        self.training = training
        self.program = training.program
        self.builders = builders
        self.programs = Programs(training.program, builders, training.callers)
        self._rare = rare
        self._is_off = is_off
        self._assumed: set[int] = set()
        self._started: list[int] = []
        """The starting modules of all programs; each is a bit of a mask."""
        self._masks: dict[int, int] = {}
        """The programs of whose steps a function is surely a part."""
        self._by: dict[int, list[Edge]] = defaultdict(list)
        """The calls that confirm a function."""
        self._given: dict[tuple[int, str], Value | None] = {}
        """What the calls of a chain pass for a parameter; None if that is not known."""
        self._calls: dict[int, list[tuple[int, list[int]]]] = {}
        self._building: dict[int, int] = {}
        self._loading: dict[int, int] = {}
        self._steps = self._begin()
        self._reach()

    def chain(self, function: int) -> Chain | None:
        """How a step leads to a function; None if no confirmed chain does."""
        if not self._masks.get(function):
            return None
        for bit in range(len(self._started)):
            if self._masks[function] >> bit & 1:
                found = self._chain_in(function, 1 << bit)
                if found is not None:
                    return found
        return None

    def runs(self, module: Module, guard: int, place: int, function: int) -> bool:
        """Whether code under a guard of a function runs whenever the function does, as far as tests tell."""
        return not self._rare.is_one(module, guard, place, function) and not self._is_off(module, guard, function)

    def is_assumed(self, step: int) -> bool:
        """Whether a step is a loss that nothing in the project builds or imports: only others can train with it."""
        return step in self._assumed

    def _begin(self) -> dict[int, int]:
        """The programs of the steps. If no code that starts leads to any of them, a library has all of them for others."""
        found = {function: self.programs.of(function) for function, loops in self.training.updating.items() if loops}
        self.is_library = not self.programs.scripts
        if self.is_library:
            found = {function: started or self._own(function) for function, started in found.items()}
        together = self.program.together
        self._assumed = {one for one in self.training.unseen if not found.get(one) and not together.is_imported(self.program.module_of(one))}
        found |= {one: self._own(one) for one in self._assumed}
        self._started = sorted(frozenset[int]().union(*found.values()))
        return {function: sum(1 << self._started.index(one) for one in started) for function, started in found.items() if started}

    def _own(self, function: int) -> frozenset[int]:
        return frozenset([self.program.module_of(function).index])

    def _reach(self) -> None:
        todo = deque(sorted(self._steps))
        waiting = set(todo)
        self._masks.update(self._steps)
        while todo:
            function = todo.popleft()
            waiting.discard(function)
            for call, targets in self._running(function):
                for target in self._restricted(call, function, targets):
                    if self._confirm(call, function, target) and target not in waiting:
                        waiting.add(target)
                        todo.append(target)

    def edge(self, call: int, function: int, target: int) -> Edge:
        """What is known about a call of a function that a step reaches and one of its targets."""
        programs = self._masks.get(function, 0)
        if len(self.program.targets_of.get(call, ())) >= _FAMILIES and not self._is_configured(target):
            return Edge(call, target, 0, "it may go to one of many functions")
        for known, guess in ((self._loads(target), "no such program loads its file"), (self._builds(call, target), "no such program builds its class")):
            programs &= known
            if not programs:
                return Edge(call, target, 0, guess)
        return Edge(call, target, programs)

    def _confirm(self, call: int, function: int, target: int) -> bool:
        """Take down that a call leads to a target; returns whether that was new."""
        edge = self.edge(call, function, target)
        if edge.guess:
            return False
        known = self._masks.get(target, 0)
        self._masks[target] = known | edge.programs
        by = self._by[target]
        before = next((at for at, one in enumerate(by) if one.call == call), -1)
        if before >= 0:
            by[before] = edge
        else:
            by.append(edge)
        return self._hand_in(call, function, target) or bool(edge.programs & ~known)

    def _running(self, function: int) -> list[tuple[int, list[int]]]:
        """The calls of a function that run in each step, with their targets."""
        if function not in self._calls:
            module = self.program.module_of(function)
            loops = self.training.reached.get(function, frozenset([None]))
            found = []
            for call, targets in self.training.running(function, loops):
                site = module.table.sites[call & MASK]
                is_leading = call in self.training.frequency.leading
                if targets and (is_leading or self.runs(module, site.guard, site.place, function)):
                    found.append((call, targets))
            self._calls[function] = found
        return self._calls[function]

    def _loads(self, target: int) -> int:
        """The programs that load the file of a function."""
        index = self.program.module_of(target).index
        if index not in self._loading:
            self._loading[index] = sum(1 << bit for bit, loaded in enumerate(self._loaded) if index in loaded)
        return self._loading[index]

    @cached_property
    def _loaded(self) -> list[frozenset[int]]:
        return [self.programs.loads(one) for one in self._started]

    def _builds(self, call: int, target: int) -> int:
        """The programs that build an object whose method is a target."""
        owner = self.program.owner.get(target)
        if owner is None or target not in self.program.bound:
            return -1
        module = self.program.module_of(call)
        function = module.nodes[module.nodes[call & MASK][1]]
        by_super = function[0] == "attr" and module.last_name(function[1]) == "()super"
        name = self.program.module_of(target).scopes[target & MASK].name
        having = [one for one in self.program.below(owner) if by_super or self._has(one, name) == owner]
        if self.is_library and not any(map(self.builders.sites, self.program.below(owner))):
            return -1
        found = 0
        for one in having:
            found |= self._building_of(one)
        return found

    def _is_configured(self, target: int) -> bool:
        """Whether a configuration or script of the project names a class that has a method."""
        owner = self.program.owner.get(target)
        if owner is None:
            return False
        name = self.program.module_of(target).scopes[target & MASK].name
        return any(self._has(one, name) == owner and self.builders.is_configured(one) for one in self.program.below(owner))

    def _has(self, owner: int, name: str) -> int | None:
        """The class that an object of a class has a method from."""
        order = self.program.order(owner)
        return next((one for one in order if name in self.program.module_of(one).scopes[one & MASK].bindings), None)

    def _building_of(self, owner: int) -> int:
        if owner not in self._building:
            built = [self.builders.is_built(owner, loaded, started) for loaded, started in zip(self._loaded, self._started, strict=True)]
            self._building[owner] = sum(1 << bit for bit, one in enumerate(built) if one)
        return self._building[owner]

    def _restricted(self, call: int, function: int, targets: list[int]) -> list[int]:
        """Of the targets of a call through a parameter those that the chain passes."""
        module = self.program.module_of(call)
        called = module.nodes[module.nodes[call & MASK][1]]
        base = module.nodes[called[1]] if called[0] == "attr" else called
        if base[0] != "param" or module.base | base[1] != function:
            return targets
        given = self._given.get((function, base[2]))
        if not given:
            return targets
        value = self.program.attribute(given, called[2], called=True) if called[0] == "attr" else given
        wanted = {target for target, _ in self.program.targets(value, [])[0]}
        return [one for one in targets if one in wanted] or targets

    def _hand_in(self, call: int, function: int, target: int) -> bool:
        """Take down what a call passes for the parameters of its target; returns whether that was new."""
        module = self.program.module_of(target)
        grown = False
        for name in module.scopes[target & MASK].params:
            key = (target, name)
            old = self._given.get(key, NOTHING)
            if old is None:
                continue
            more = self._passed(call, function, target, name)
            new = None if not more else old | more
            if new != old:
                self._given[key] = new
                grown = True
        return grown

    def _passed(self, call: int, function: int, target: int, name: str) -> Value | None:
        """What a call passes for a parameter, as far as the chain to the call tells; None if unknown."""
        program = self.program
        how = next((edge & 3 for edge in program.values.get(("edges", target), ()) if edge >> 2 == call), UNKNOWN)
        node = None if how == UNKNOWN else program.argument_node(call, target, how, name)
        if node is None:
            return None
        module = program.module_of(node)
        row = module.nodes[node & MASK]
        if row[0] == "param" and module.base | row[1] == function:
            return self._given.get((function, row[2]))
        return program.get(node)

    def _chain_in(self, function: int, program: int) -> Chain | None:
        """The shortest chain in a program."""
        came: dict[int, tuple[int, int]] = {}
        todo = deque([function])
        seen = {function}
        while todo:
            at = todo.popleft()
            if self._steps.get(at, 0) & program:
                return Chain(at, tuple(self._back(at, function, came)))
            for edge in self._by.get(at, ()):
                above = self.program.function_of(edge.call)
                if edge.programs & program and above not in seen:
                    seen.add(above)
                    came[above] = (at, edge.call)
                    todo.append(above)
        return None

    @staticmethod
    def _back(step: int, function: int, came: dict[int, tuple[int, int]]) -> Iterator[int]:
        """The calls of a chain from the function back to the step."""
        calls = []
        at = step
        while at != function:
            at, call = came[at]
            calls.append(call)
        yield from reversed(calls)


__all__ = ["Chain", "EveryStep"]
