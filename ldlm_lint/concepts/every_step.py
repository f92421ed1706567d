"""What surely runs in every step of a training: a confirmed chain of calls leads from the step to it.

A call confirms its target if some program that reaches the step loads the target's file, builds the target's class where
it is a method, and passes the object or function where the target is called through a parameter:

    for batch in loader:                     # the programs of this loop: train_tokens.py
        loss = net(batch)                    # both LatentNet.forward and PackedTransformer.forward by its values,
        loss.backward()                      # but only sample.py loads and builds a PackedTransformer

Nor does code run in every step that is behind an early return, an interval, or an option that is off.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from typing import TYPE_CHECKING, NamedTuple

from ldlm_lint.concepts.assumed_values import AssumedValues
from ldlm_lint.concepts.builders import Builders
from ldlm_lint.concepts.call_contexts import CallContexts, Edge
from ldlm_lint.concepts.programs import ANY, Programs
from ldlm_lint.concepts.reach import Reach
from ldlm_lint.concepts.rhythm import Rhythm
from ldlm_lint.concepts.steps import Steps
from ldlm_lint.concepts.switched_off import SwitchedOff
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Call, Class, Function
from ldlm_lint.program.spots import Spot

if TYPE_CHECKING:
    from ldlm_lint.program.modules import Module


class Chain(NamedTuple):
    """How a step leads to a function: the function of the step, and the calls from there on, the last one first."""

    step: Function
    calls: tuple[Call, ...]


_FAMILIES = 10
"""Functions that one call may go to from which on each is a guess: of ten model families a run trains one. No fact says
which, but for those that a configuration of the project chooses."""


class EveryStep(Concept):
    """The chains of a program."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._training_steps = code[Steps]
        self._reached = code[Reach]
        self.builders = code[Builders]
        self.contexts = CallContexts(code, self._programs_of)
        self.programs = code[Programs]
        self._rhythm = code[Rhythm]
        self._options = code[SwitchedOff]
        self._assumed: set[int] = set()
        self._started: list[int] = []
        """The starting modules of all programs; each is a bit of a mask."""
        self._masks: dict[int, int] = {}
        """The programs of whose steps a function is surely a part."""
        self._calls: dict[int, list[tuple[int, list[int]]]] = {}
        self._building: dict[int, int] = {}
        self._loading: dict[int, int] = {}
        self._steps = self._begin()
        self._reach()

    def chain(self, spot: Spot) -> Chain | None:
        """How a step leads to code; None if no confirmed chain does."""
        mask = self._masks.get(spot.function.key, 0)
        programs = [1 << bit for bit in range(len(self._started)) if mask >> bit & 1]
        ways = ((steps, program) for steps in (self._usual, self._steps) for program in programs)
        return next((found for steps, program in ways if (found := self._chain_in(spot, program, steps))), None)

    def step_around(self, spot: Spot) -> Spot | None:
        """Where the step begins in which code surely runs: its loop, or the function that is a step."""
        chain = self.chain(spot)
        if chain is None:
            return None
        loops = self._training_steps.step_loops(chain.step)
        return loops[0].spot if loops else chain.step.spot

    @cached_property
    def _usual(self) -> dict[int, int]:
        """The steps that the defaults of options lead to: micro-batches, if there are any, are part of a larger step."""
        return {step: programs for step, programs in self._steps.items() if not self._is_optional(step)}

    def _is_optional(self, step: int) -> bool:
        function = Function(self.code, step)
        loops = self._training_steps.step_loops(function)
        return bool(loops) and not self._training_steps.is_whole(function) and all(self._options.is_by_default(loop.spot) for loop in loops)

    def runs(self, spot: Spot) -> bool:
        """Whether code runs whenever its function does, as far as tests tell."""
        return not self._rhythm.is_rare(spot) and not self._options.is_one(spot)

    def is_assumed(self, step: Function) -> bool:
        """Whether a step is a loss that nothing in the project builds or imports: only others can train with it."""
        return step.key in self._assumed

    def _begin(self) -> dict[int, int]:
        """The programs of the steps. If no code that starts leads to any of them, a library has all of them for others."""
        found = {function: self.programs.of(function) for function, loops in self._training_steps.updating.items() if loops}
        self.is_library = not self.programs.scripts
        if self.is_library:
            found = {function: started or self._own(function) for function, started in found.items()}
        together = self.program.together
        self._assumed = {one.key for one in self.code[AssumedValues].unseen_losses if not found.get(one.key) and not together.is_imported(one.module)}
        found |= {one: self._own(one) for one in self._assumed}
        self._started = sorted(frozenset[int]().union(*found.values()))
        return {function: self._mask(started) for function, started in found.items() if started}

    def _mask(self, started: frozenset[int]) -> int:
        return sum(1 << at for at, one in enumerate(self._started) if one in started)

    def _programs_of(self, function: int) -> int:
        return self._mask(self.programs.of(function))

    def _own(self, function: int) -> frozenset[int]:
        return frozenset([self.program.module_of(function).index])

    def _reach(self) -> None:
        self.contexts.begin_with(self._steps)
        todo = deque(sorted(self._steps))
        waiting = set(todo)
        self._masks.update(self._steps)
        while todo:
            function = todo.popleft()
            waiting.discard(function)
            for call, targets in self._running(function):
                for target in targets:
                    if self._confirm(call, function, target, len(targets)) and target not in waiting:
                        waiting.add(target)
                        todo.append(target)

    def edge(self, call: int, function: int, target: int, ways: int) -> Edge:
        """What is known about a call of a function that a step reaches and one of the functions, so many, that it may go
        to."""
        programs = self._masks.get(function, 0)
        if ways >= _FAMILIES and not self._is_configured(target):
            return Edge(call, target, 0, "it may go to one of many functions")
        for known, guess in (
            (self._loads(target), "no such program loads its file"),
            (self._builds(call, target), "no such program builds its class"),
            (self.contexts.letting(call, function, target), "no such program comes there, or passes it"),
        ):
            programs &= known
            if not programs:
                return Edge(call, target, 0, guess)
        return Edge(call, target, programs)

    def _confirm(self, call: int, function: int, target: int, ways: int) -> bool:
        """Take down that a call leads to a target; returns whether that was new."""
        edge = self.edge(call, function, target, ways)
        if edge.guess:
            return False
        self._masks[target] = self._masks.get(target, 0) | edge.programs
        return self.contexts.add(edge)

    def _running(self, function: int) -> list[tuple[int, list[int]]]:
        """The calls of a function that run in each step, with their targets."""
        if function not in self._calls:
            found = []
            for call, targets in self._reached.running(function):
                one = Call(self.code, call)
                if targets and (self._training_steps.is_leading(one) or self.runs(one.spot)):
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

    @cached_property
    def _programs_with_files(self) -> list[tuple[frozenset[Module], Module | None]]:
        """The files that each program loads, and the one in which it starts."""
        files = self.program.modules.all
        started = (files[one] if one != ANY else None for one in self._started)
        return [(frozenset(files[index] for index in loaded), one) for loaded, one in zip(self._loaded, started, strict=True)]

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
        if self.is_library and not any(map(self.builders.sites, Class(self.code, owner).subclasses)):
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
        return any(self._has(one, name) == owner and self.builders.is_configured(Class(self.code, one)) for one in self.program.below(owner))

    def _has(self, owner: int, name: str) -> int | None:
        """The class that an object of a class has a method from."""
        order = self.program.order(owner)
        return next((one for one in order if name in self.program.module_of(one).scopes[one & MASK].bindings), None)

    def _building_of(self, owner: int) -> int:
        if owner not in self._building:
            built = [self.builders.is_built(Class(self.code, owner), loaded, started) for loaded, started in self._programs_with_files]
            self._building[owner] = sum(1 << bit for bit, one in enumerate(built) if one)
        return self._building[owner]

    def _chain_in(self, spot: Spot, program: int, steps: dict[int, int]) -> Chain | None:
        """The shortest chain in a program, from one of some steps, that lets code run."""
        function, module = spot.function.key, spot.function.module
        guard = spot.guard.key & MASK if spot.guard is not None else -1
        came: dict[tuple[int, int], Edge | None] = {}
        todo = deque[Edge]()
        if self._is_entered(function, steps.get(function, 0) & program, lambda edge: self.contexts.may_run(edge, module, guard)):
            return Chain(spot.function, ())
        for edge in self._edges(function, program):
            if self.contexts.may_run(edge, module, guard):
                came[edge.call, edge.target] = None
                todo.append(edge)
        while todo:
            edge = todo.popleft()
            above = self.program.function_of(edge.call)
            if self._is_entered(above, steps.get(above, 0) & program, partial(self._leads, edge, program)):
                return Chain(Function(self.code, above), tuple(Call(self.code, one) for one in self._back(edge, came)))
            for one in self._edges(above, program):
                if (one.call, one.target) not in came and self._leads(edge, program, one):
                    came[one.call, one.target] = edge
                    todo.append(one)
        return None

    def _leads(self, edge: Edge, program: int, entering: Edge) -> bool:
        """Whether an edge is taken in a program if another one has entered the function of its call."""
        return bool(self.contexts.let_by(entering, edge.call, edge.target) & program)

    def _edges(self, function: int, program: int) -> Iterator[Edge]:
        """The confirmed edges to a function in a program."""
        return (edge for edge in self.contexts.confirmed(function) if edge.programs & program)

    def _is_entered(self, step: int, program: int, lets: Callable[[Edge], bool]) -> bool:
        """Whether something that enters a step in a program, if it has that, lets a place in it run."""
        if not program:
            return False
        return self.contexts.is_open(step, program) or any(lets(edge) for edge in self.contexts.of(step) if edge.programs & program)

    @staticmethod
    def _back(last: Edge, came: dict[tuple[int, int], Edge | None]) -> Iterator[int]:
        """The calls of a chain, from the last one in the function to the first one of the step."""
        calls = []
        at: Edge | None = last
        while at is not None:
            calls.append(at.call)
            at = came[at.call, at.target]
        yield from reversed(calls)


__all__ = ["Chain", "EveryStep"]
