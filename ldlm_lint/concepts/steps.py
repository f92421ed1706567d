"""Training steps: the loops and functions that repeat a backward pass by which something is updated.

A step is the loop around the pass, or around the calls of the functions that it is in; or a function that a framework, or
code that is not visible, calls for each step. If every backward pass of a loop is under an interval, that branch is the
step.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property

from ldlm_lint.concepts.losses import BackwardPasses
from ldlm_lint.concepts.updates import Updates
from ldlm_lint.concepts.way_up import Loops, WayUp, is_element
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Call, Expr, Function, Guard, Loop
from ldlm_lint.program.spots import Spot


class Steps(Concept):
    """The steps that a program shows; `AssumedValues` adds those that others repeat."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._loops: dict[Function, Loops] = defaultdict(set)
        """The steps, by the functions that they are in."""
        self._updating: dict[Function, Loops] = defaultdict(set)
        """Those of them that update parameters. Others only gather gradients, such as for an initialization."""
        self._leading: set[Call] = set()
        """The calls that lead to a backward pass, and the backward passes."""
        self._leading_functions: set[Function] = set()
        """Functions that lead to a backward pass of a training."""
        self._gates: dict[Loop, list[Guard | None]] = defaultdict(list)
        """The intervals that the backward passes of a loop are under, None for none."""
        self._find(code[Updates])

    def _find(self, updates: Updates) -> None:
        """Go up from backward passes to the loops that repeat them; gradients without an update do not train."""
        stepping = self._stepping_loops(updates)
        ways = [WayUp(self.code, call, stepping) for call in self.code[BackwardPasses].calls]
        # All calls that lead to backward passes have to be known before it is decided whose updates are whose.
        self._leading.update(*(way.calls for way in ways))
        for way in ways:
            steps_itself = self.code[BackwardPasses].steps_itself(way.backward) or updates.reads_gradients(way.functions)
            if steps_itself or way.functions & updates.functions:
                updating = steps_itself or any(updates.follow(function, loop, self._leading) for function, loop in way.places)
                self._take_down(way, updating)

    def _take_down(self, way: WayUp, updating: bool) -> None:
        self._leading_functions |= way.functions
        for function, loops in way.loops.items():
            self._loops[function] |= loops
            self._updating[function] |= loops if updating else set()
        for loop, found in way.gates.items():
            self._gates[loop] += found

    def _stepping_loops(self, updates: Updates) -> set[Loop]:
        """The loops that call a ``step`` which does not belong to a schedule."""
        found: set[Loop] = set()
        for call in self.code.calls_named("step"):
            if call.loops and not updates.steps_schedule(call):
                # A loop over optimizers is a part of one step.
                found.update(one for one in call.loops if call.receiver is None or not is_element(call.receiver, one))
        return found

    def add(self, function: Function) -> None:
        """Take down a function of which each call by code that is not visible is a step."""
        self._loops[function].add(None)
        self._updating[function].add(None)

    @property
    def functions(self) -> list[Function]:
        """The functions that steps are in."""
        return list(self._loops)

    def are_in(self, function: Function) -> bool:
        """Whether a function has steps, or is one."""
        return function in self._loops

    def parts_of(self, function: Function) -> frozenset[Loop | None]:
        """The loops of a function that are steps; None if each call of it is one."""
        return frozenset(self._loops.get(function, ()))

    def lead_from(self, function: Function) -> bool:
        """Whether a function leads to a backward pass of a training."""
        return function in self._leading_functions

    @property
    def updating_functions(self) -> list[Function]:
        """The functions with steps that update parameters, in the order of their files."""
        return sorted((function for function, loops in self._updating.items() if loops), key=lambda one: one.key)

    def step_loops(self, function: Function) -> list[Loop]:
        """The loops of a function that are steps, in order."""
        return sorted((one for one in self._loops.get(function, ()) if one is not None), key=lambda one: one.key)

    def are_in_loop(self, loop: Loop) -> bool:
        """Whether a loop is a step, or has one in it."""
        return any(loop in one.around for one in self.step_loops(loop.function))

    def is_whole(self, function: Function) -> bool:
        """Whether each call of a function is a step."""
        return None in self._loops.get(function, ())

    def repeats(self, iterable: Expr) -> bool:
        """Whether the loop of a step iterates over an expression: what is counted there counts steps."""
        return iterable in self._repeated

    def is_leading(self, call: Call) -> bool:
        """Whether a call leads to a backward pass, or is one."""
        return call in self._leading

    def are_loops(self, loop: Loop) -> bool:
        """Whether a loop is a step."""
        return loop in self._loops.get(loop.function, ())

    @cached_property
    def _repeated(self) -> frozenset[Expr]:
        return frozenset(loop.value for loops in self._loops.values() for loop in loops if loop is not None)

    def holds(self, spot: Spot, loops: frozenset[Loop | None]) -> bool:
        """Whether a place is inside of one of the loops, and under the interval of its backward passes if all have one."""
        if None in loops:
            return True
        step = next((one for one in spot.loops if one in loops), None)
        gates = self._gates.get(step, [None]) if step is not None else []
        return None in gates or any(guard in gates for guard in spot.guards)
