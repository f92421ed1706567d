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
from typing import NamedTuple

from ldlm_lint.concepts.assumed_values import AssumedValues
from ldlm_lint.concepts.builders import Builders
from ldlm_lint.concepts.call_contexts import CallContexts, Edge, Masks
from ldlm_lint.concepts.programs import Programs, Start
from ldlm_lint.concepts.reach import Reach
from ldlm_lint.concepts.rhythm import Rhythm
from ldlm_lint.concepts.steps import Steps
from ldlm_lint.concepts.switched_off import SwitchedOff
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Call, Class, Function
from ldlm_lint.program.modules import Module
from ldlm_lint.program.spots import Spot


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
        self._builders = code[Builders]
        self._programs = code[Programs]
        self._rhythm = code[Rhythm]
        self._options = code[SwitchedOff]
        self._contexts = CallContexts(code, lambda function: self._mask(self._programs.of(function)))
        self._assumed: set[Function] = set()
        self._started: list[Start] = []
        """Where all programs start; each is a bit of a mask."""
        self._masks: dict[Function, Masks] = {}
        """The programs of whose steps a function is surely a part."""
        self._calls: dict[Function, list[tuple[Call, list[Function]]]] = {}
        self._building: dict[Class, Masks] = {}
        self._loading: dict[Module, Masks] = {}
        self._steps = self._begin()
        self._reach()

    def chain(self, spot: Spot) -> Chain | None:
        """How a step leads to code; None if no confirmed chain does."""
        mask = self._masks.get(spot.function, 0)
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
    def _usual(self) -> dict[Function, Masks]:
        """The steps that the defaults of options lead to: micro-batches, if there are any, are part of a larger step."""
        return {step: programs for step, programs in self._steps.items() if not self._is_optional(step)}

    def _is_optional(self, step: Function) -> bool:
        loops = self._training_steps.step_loops(step)
        return bool(loops) and not self._training_steps.is_whole(step) and all(self._options.is_by_default(loop.spot) for loop in loops)

    def runs(self, spot: Spot) -> bool:
        """Whether code runs whenever its function does, as far as tests tell."""
        return not self._rhythm.is_rare(spot) and not self._options.is_one(spot)

    def is_assumed(self, step: Function) -> bool:
        """Whether a step is a loss that nothing in the project builds or imports: only others can train with it."""
        return step in self._assumed

    def _begin(self) -> dict[Function, Masks]:
        """The programs of the steps. If no code that starts leads to any of them, a library has all of them for others."""
        found = {function: self._programs.of(function) for function in self._training_steps.updating_functions}
        self._is_library = not self._programs.scripts
        if self._is_library:
            found = {function: started or frozenset([function.module]) for function, started in found.items()}
        together = self.program.together
        self._assumed = {one for one in self.code[AssumedValues].unseen_losses if not found.get(one) and not together.is_imported(one.module)}
        found |= {one: frozenset([one.module]) for one in self._assumed}
        every = frozenset[Start]().union(*found.values())
        self._started = sorted(every, key=lambda one: one.path if one is not None else "")
        return {function: self._mask(started) for function, started in found.items() if started}

    def _mask(self, started: frozenset[Start]) -> Masks:
        return sum(1 << at for at, one in enumerate(self._started) if one in started)

    def _reach(self) -> None:
        self._contexts.begin_with(self._steps)
        todo = deque(self._steps)
        waiting = set(todo)
        self._masks.update(self._steps)
        while todo:
            function = todo.popleft()
            waiting.discard(function)
            for call, targets in self._running(function):
                for target in targets:
                    if self._confirm(call, target, len(targets)) and target not in waiting:
                        waiting.add(target)
                        todo.append(target)

    def _edge(self, call: Call, target: Function, ways: int) -> Edge:
        """What is known about a call of a function that a step reaches and one of the functions, so many, that it may go
        to."""
        programs = self._masks.get(call.function, 0)
        if ways >= _FAMILIES and not self._is_configured(target):
            return Edge(call, target, 0, "it may go to one of many functions")
        for known, guess in (
            (self._loads(target), "no such program loads its file"),
            (self._builds(call, target), "no such program builds its class"),
            (self._contexts.letting(call, target), "no such program comes there, or passes it"),
        ):
            programs &= known
            if not programs:
                return Edge(call, target, 0, guess)
        return Edge(call, target, programs)

    def _confirm(self, call: Call, target: Function, ways: int) -> bool:
        """Take down that a call leads to a target; returns whether that was new."""
        edge = self._edge(call, target, ways)
        if edge.guess:
            return False
        self._masks[target] = self._masks.get(target, 0) | edge.programs
        return self._contexts.add(edge)

    def _running(self, function: Function) -> list[tuple[Call, list[Function]]]:
        """The calls of a function that run in each step, with their targets."""
        if function not in self._calls:
            running = self._reached.running(function)
            found = [(call, targets) for call, targets in running if targets and (self._training_steps.is_leading(call) or self.runs(call.spot))]
            self._calls[function] = found
        return self._calls[function]

    def _loads(self, target: Function) -> Masks:
        """The programs that load the file of a function."""
        if target.module not in self._loading:
            self._loading[target.module] = sum(1 << bit for bit, loaded in enumerate(self._loaded) if target.module in loaded)
        return self._loading[target.module]

    @cached_property
    def _loaded(self) -> list[frozenset[Module]]:
        return [self._programs.loads(one) for one in self._started]

    def _builds(self, call: Call, target: Function) -> Masks:
        """The programs that build an object whose method is a target."""
        owner = target.owner
        if owner is None or not target.takes_object:
            return -1
        if self._is_library and not any(map(self._builders.sites, owner.subclasses)):
            return -1
        by_super = call.receiver is not None and call.receiver.last_name == "()super"
        found = 0
        for one in owner.subclasses:
            if by_super or _has(one, target.name) == owner:
                found |= self._building_of(one)
        return found

    def _is_configured(self, target: Function) -> bool:
        """Whether a configuration or script of the project names a class that has a method."""
        owner = target.owner
        return owner is not None and any(_has(one, target.name) == owner and self._builders.is_configured(one) for one in owner.subclasses)

    def _building_of(self, owner: Class) -> Masks:
        if owner not in self._building:
            built = [self._builders.is_built(owner, loaded, started) for loaded, started in zip(self._loaded, self._started, strict=True)]
            self._building[owner] = sum(1 << bit for bit, one in enumerate(built) if one)
        return self._building[owner]

    def _chain_in(self, spot: Spot, program: Masks, steps: dict[Function, Masks]) -> Chain | None:
        """The shortest chain in a program, from one of some steps, that lets code run."""
        came: dict[tuple[Call, Function], Edge | None] = {}
        todo = deque[Edge]()
        if self._is_entered(spot.function, steps.get(spot.function, 0) & program, lambda edge: self._contexts.may_run(edge, spot)):
            return Chain(spot.function, ())
        for edge in self._edges(spot.function, program):
            if self._contexts.may_run(edge, spot):
                came[edge.call, edge.target] = None
                todo.append(edge)
        while todo:
            edge = todo.popleft()
            above = edge.call.function
            if self._is_entered(above, steps.get(above, 0) & program, partial(self._leads, edge, program)):
                return Chain(above, tuple(self._back(edge, came)))
            for one in self._edges(above, program):
                if (one.call, one.target) not in came and self._leads(edge, program, one):
                    came[one.call, one.target] = edge
                    todo.append(one)
        return None

    def _leads(self, edge: Edge, program: Masks, entering: Edge) -> bool:
        """Whether an edge is taken in a program if another one has entered the function of its call."""
        return bool(self._contexts.let_by(entering, edge.call, edge.target) & program)

    def _edges(self, function: Function, program: Masks) -> Iterator[Edge]:
        """The confirmed edges to a function in a program."""
        return (edge for edge in self._contexts.confirmed(function) if edge.programs & program)

    def _is_entered(self, step: Function, program: Masks, lets: Callable[[Edge], bool]) -> bool:
        """Whether something that enters a step in a program, if it has that, lets a place in it run."""
        if not program:
            return False
        return self._contexts.is_open(step, program) or any(lets(edge) for edge in self._contexts.of(step) if edge.programs & program)

    @staticmethod
    def _back(last: Edge, came: dict[tuple[Call, Function], Edge | None]) -> Iterator[Call]:
        """The calls of a chain, from the last one in the function to the first one of the step."""
        calls = []
        at: Edge | None = last
        while at is not None:
            calls.append(at.call)
            at = came[at.call, at.target]
        yield from reversed(calls)


def _has(owner: Class, name: str) -> Class | None:
    """The class that an object of a class has a method from."""
    return next((one for one in owner.bases if one.bound(name)), None)


__all__ = ["Chain", "EveryStep"]
