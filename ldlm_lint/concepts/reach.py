"""What training steps run: the functions that calls lead to from the steps, without what does not belong to a step, such as
evaluations."""

from __future__ import annotations

from collections.abc import Iterator

from ldlm_lint.concepts.evaluation import Evaluation
from ldlm_lint.concepts.rhythm import Rhythm
from ldlm_lint.concepts.steps import Steps
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Call, Function, Guard, Loop
from ldlm_lint.program.spots import Spot

Parts = frozenset[Loop | None]
"""The loops of a function that are steps; None for all of it."""
_WHOLE: Parts = frozenset([None])


class Reach(Concept):
    """The functions that the steps of a program reach, and the calls that run in each step."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._steps = code[Steps]
        self._rhythm = code[Rhythm]
        self._evaluation = code[Evaluation]
        self.follow()

    def follow(self) -> None:
        """Go forward from the steps over calls. Assumed values add steps and calls: then it is done again."""
        self._loops: dict[Function, Parts] = {}
        """What runs in a step: of each function the loops, or None for all of it."""
        self._entered_by: dict[Function, Call] = {}
        """The call by which a function is first reached."""
        self._parts: dict[Function, bool] = {}
        todo = [(function, self._steps.parts_of(function)) for function in self._steps.functions]
        while todo:
            function, loops = todo.pop()
            known = self._loops.get(function)
            if known is not None and (None in known or loops <= known):
                continue
            loops = self._loops[function] = (known or frozenset()) | loops
            for call, targets in self.running(function):
                for target in targets:
                    self._entered_by.setdefault(target, call)
                    todo.append((target, _WHOLE))

    @property
    def functions(self) -> list[Function]:
        """The functions that steps are in or reach."""
        return list(self._loops)

    def has(self, function: Function) -> bool:
        """Whether a step is in a function, or reaches it."""
        return function in self._loops

    def is_inside(self, call: Call) -> bool:
        """Whether a call is in a step, in each or in some only. What is bound before its loop is not: ``scope =
        model.no_sync``."""
        loops = self._loops.get(call.function, frozenset())
        return None in loops or not loops.isdisjoint(call.loops)

    def runs(self, call: Call) -> bool:
        """Whether a call is made in each step that reaches its function."""
        return self.runs_at(call.spot)

    def runs_at(self, spot: Spot) -> bool:
        """Whether code runs in each step that reaches its function."""
        loops = self._loops.get(spot.function)
        return loops is not None and self._steps.holds(spot, loops) and self._rhythm.passes(spot)

    def is_certain(self, function: Function) -> bool:
        """Whether a step surely leads to a function: each call on the way has a single target."""
        way = self.way_to(function)
        return self._steps.are_in(way[0].function if way else function) and all(len(call.targets) == 1 for call in way)

    def way_to(self, function: Function) -> list[Call]:
        """The calls by which a step first reaches a function, the one in the step first."""
        way: dict[Function, Call] = {}
        while not self._steps.are_in(function) and function in self._entered_by and function not in way:
            way[function] = self._entered_by[function]
            function = way[function].function
        return list(way.values())[::-1]

    def running(self, function: Function) -> Iterator[tuple[Call, list[Function]]]:
        """The calls of a function that run in each of the steps that reach it (of one that none does, each time), and what
        each leads to that is part of a step."""
        passes: dict[Guard | None, bool] = {None: True}
        loops = self._loops.get(function, _WHOLE)
        for call in function.calls:
            spot = call.spot
            if self._steps.holds(spot, loops):
                # Most calls are under few guards.
                if spot.guard not in passes:
                    passes[spot.guard] = self._rhythm.passes(spot)
                if passes[spot.guard]:
                    yield call, [one for one in (*self._followed(call), *_read_by(call)) if self._is_part(one)]

    def _followed(self, call: Call) -> list[Function]:
        """The targets of a call of a step; for the call that leads to the backward pass only those with one.

        An override of such a method that runs nothing backward belongs to a program that only shows or evaluates.
        """
        targets = self._rhythm.targets_in_steps(call)
        leading = [one for one in targets if self._steps.lead_from(one)] if self._steps.is_leading(call) else []
        return leading or targets

    def _is_part(self, target: Function) -> bool:
        """Whether a function that a step calls is part of it: no evaluation, no making of a module."""
        if target not in self._parts:
            self._parts[target] = self._belongs(target)
        return self._parts[target]

    def _belongs(self, function: Function) -> bool:
        if self._evaluation.is_set_by(function) and not self._steps.are_in(function):
            return False
        owner = function.owner
        if owner is None:
            return True
        return not self._evaluation.is_forward_only(owner) and not (owner.is_module and function.name == "__init__")


def _read_by(call: Call) -> list[Function]:
    """The properties that a call reads, each like a call of its method: ``kept.append(output.entropy)``, ``output.entropy.mean()``."""
    return list(dict.fromkeys(function for one in call.attributes_read for function in one.properties))
