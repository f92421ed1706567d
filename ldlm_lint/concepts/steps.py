"""Training steps: the loops and functions that repeat a backward pass by which something is updated.

A step is the loop around the pass, or around the calls of the functions that it is in; or a function that a framework, or
code that is not visible, calls for each step. If every backward pass of a loop is under an interval, that branch is the
step.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property

from ldlm_lint.code.table import loops_above
from ldlm_lint.concepts.losses import BackwardPasses
from ldlm_lint.concepts.updates import Updates
from ldlm_lint.concepts.way_up import Loops, WayUp, is_element
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Call, Expr, Function, Loop
from ldlm_lint.program.spots import Spot


class Steps(Concept):
    """The steps that a program shows; `AssumedValues` adds those that others repeat."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self.loops: dict[int, Loops] = defaultdict(set)
        """The steps, by the functions that they are in."""
        self.updating: dict[int, Loops] = defaultdict(set)
        """Those of them that update parameters. Others only gather gradients, such as for an initialization."""
        self.leading: set[int] = set()
        """The calls (keys) that lead to a backward pass, and the backward passes."""
        self.leading_functions: set[int] = set()
        """Functions that lead to a backward pass of a training."""
        self._gates: dict[tuple[int, int], list[int]] = defaultdict(list)
        """The intervals that the backward passes of a loop are under, -1 for none."""
        self._find(Updates(code.program))

    def _find(self, updates: Updates) -> None:
        """Go up from backward passes to the loops that repeat them; gradients without an update do not train."""
        stepping = self._stepping_loops(updates)
        ways = [WayUp(self.code, call, stepping) for call in self.code[BackwardPasses].calls]
        # All calls that lead to backward passes have to be known before it is decided whose updates are whose.
        self.leading.update(*(way.calls for way in ways))
        for way in ways:
            steps_itself = self.code[BackwardPasses].steps_itself(way.backward) or updates.reads_gradients(way.functions)
            if steps_itself or way.functions & updates.functions:
                updating = steps_itself or any(updates.follow(function, loop, self.leading) for function, loop in way.places)
                self._take_down(way, updating)

    def _take_down(self, way: WayUp, updating: bool) -> None:
        self.leading_functions |= way.functions
        for function, loops in way.loops.items():
            self.loops[function] |= loops
            self.updating[function] |= loops if updating else set()
        for place, found in way.gates.items():
            self._gates[place] += found

    def _stepping_loops(self, updates: Updates) -> set[tuple[int, int]]:
        """The loops that call a ``step`` which does not belong to a schedule."""
        found: set[tuple[int, int]] = set()
        for call in self.program.calls.get("step", ()):
            module = self.program.module_of(call)
            loop = module.table.sites[call & MASK].loop
            if loop < 0 or updates.steps_schedule(call):
                continue
            receiver = module.nodes[module.nodes[call & MASK][1]]
            around = loops_above(module.table.loops, loop)
            # A loop over optimizers is a part of one step.
            found.update((module.index, one) for one in around if receiver[0] != "attr" or not is_element(module, receiver[1], one))
        return found

    def add(self, function: Function) -> None:
        """Take down a function of which each call by code that is not visible is a step."""
        self.loops[function.key].add(None)
        self.updating[function.key].add(None)

    @property
    def functions(self) -> list[Function]:
        """The functions that steps are in."""
        return [Function(self.code, one) for one in self.loops]

    def are_in(self, function: Function) -> bool:
        """Whether a function has steps, or is one."""
        return function.key in self.loops

    def parts_of(self, function: Function) -> frozenset[Loop | None]:
        """The loops of a function that are steps; None if each call of it is one."""
        base = function.module.base
        return frozenset(Loop(self.code, base | one) if one is not None else None for one in self.loops.get(function.key, ()))

    def lead_from(self, function: Function) -> bool:
        """Whether a function leads to a backward pass of a training."""
        return function.key in self.leading_functions

    @property
    def updating_functions(self) -> list[Function]:
        """The functions with steps that update parameters, in the order of their files."""
        return [Function(self.code, one) for one in sorted(self.updating) if self.updating[one]]

    def step_loops(self, function: Function) -> list[Loop]:
        """The loops of a function that are steps, in order."""
        loops = self.loops.get(function.key, ())
        return [Loop(self.code, function.module.base | one) for one in sorted(one for one in loops if one is not None)]

    def are_in_loop(self, loop: Loop) -> bool:
        """Whether a loop is a step, or has one in it."""
        return any(loop in one.around for one in self.step_loops(loop.function))

    def is_whole(self, function: Function) -> bool:
        """Whether each call of a function is a step."""
        return None in self.loops.get(function.key, ())

    def repeats(self, iterable: Expr) -> bool:
        """Whether the loop of a step iterates over an expression."""
        return iterable.key in self.repeated

    def is_leading(self, call: Call) -> bool:
        """Whether a call leads to a backward pass, or is one."""
        return call.key in self.leading

    def are_loops(self, loop: Loop) -> bool:
        """Whether a loop is a step."""
        return loop.key & MASK in self.loops.get(loop.function.key, ())

    @cached_property
    def repeated(self) -> frozenset[int]:
        """What the loops of steps iterate over (keys): what is counted there counts steps."""
        loops = ((self.program.module_of(function), loop) for function, loops in self.loops.items() for loop in loops if loop is not None)
        return frozenset(module.base | module.table.loops[loop].value for module, loop in loops)

    def holds(self, spot: Spot, loops: frozenset[Loop | None]) -> bool:
        """Whether a place is inside of one of the loops, and under the interval of its backward passes if all have one."""
        if None in loops:
            return True
        step = next((one for one in spot.loops if one in loops), None)
        gates = self._gates.get((spot.function.key, step.key & MASK), [-1]) if step is not None else []
        return -1 in gates or any(guard.key & MASK in gates for guard in spot.guards)
