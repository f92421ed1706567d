"""The way up from a backward pass: over the functions that it is in and their callers, to the loops that repeat it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable

from ldlm_lint.concepts.intervals import Intervals
from ldlm_lint.concepts.losses import BackwardPasses
from ldlm_lint.program.codebase import Codebase
from ldlm_lint.program.handles import Call, Expr, Function, Guard, Loop

Loops = set[Loop | None]
"""Loops of a function that are steps; None stands for all of it."""


class WayUp:
    """The way up from one backward pass; ``stepping`` are the loops that step an optimizer."""

    def __init__(self, code: Codebase, backward: Call, stepping: Collection[Loop]) -> None:
        self.backward = backward
        self.loops: dict[Function, Loops] = defaultdict(set)
        """The loops that repeat it, by their functions."""
        self.gates: dict[Loop, list[Guard | None]] = defaultdict(list)
        """The intervals that what leads to it is under in a loop, None for none."""
        self.places: set[tuple[Function, Loop | None]] = set()
        """The functions that lead to it, each with the loop around the call that does, None for none."""
        self.calls: set[Call] = set()
        """The backward pass, and the calls that lead to it."""
        self._intervals = code[Intervals]
        self._steps_itself = code[BackwardPasses].steps_itself(backward)
        self._stepping = stepping
        self._named: dict[Function, tuple[Expr, str]] = {}
        self._todo: list[Function] = []
        self._seen: set[Function] = set()
        self._go_up()

    @property
    def functions(self) -> set[Function]:
        """The functions that lead to it."""
        return {function for function, _ in self.places}

    def _go_up(self) -> None:
        self._come_to(self.backward, is_pass=True)
        while self._todo:
            function = self._todo.pop()
            if function.is_module:
                continue
            if not function.callers:
                self.loops[function].add(None)
            for call in function.callers:
                if self._may_name(call, function):
                    self._know_name(call, function)
                    self._come_to(call, is_pass=False)

    def _come_to(self, call: Call, *, is_pass: bool) -> None:
        """Take down where a call is; the way goes on above its function, unless the loop around it is the step."""
        inner = next(iter(call.loops), None)
        self.places.add((call.function, inner))
        self.calls.add(call)
        loop = inner if is_pass else _repeating(call, inner)
        if loop is None:
            self._go_on_above(call.function)
            return
        self.gates[loop].append(self._gate(call.guards))
        self.loops[call.function].add(loop)
        if loop in self._stepping or (is_pass and self._steps_itself):
            return
        # Micro-batches: the loop around them steps.
        parent = next(iter(loop.loops), None)
        if parent is not None and parent in self._stepping:
            self.loops[call.function].add(parent)
        elif is_pass:
            self._go_on_above(call.function)

    def _go_on_above(self, function: Function) -> None:
        if function not in self._seen:
            self._seen.add(function)
            self._todo.append(function)

    def _know_name(self, call: Call, method: Function) -> None:
        """Of a call ``getattr(hook, name)()`` the parameter that has the name, and the name that leads to a method."""
        looked_up = call.callee
        if isinstance(looked_up, Call) and looked_up.called_name == "getattr" and len(looked_up.positional) > 1:
            key = looked_up.positional[1].plain
            if key.kind == "param":
                self._named[key.function] = (key, method.name)

    def _may_name(self, call: Call, function: Function) -> bool:
        """Whether a call of a function may pass the name of a method that leads to the backward pass."""
        parameter, name = self._named.get(function, (None, ""))
        given = call.given_for(parameter) if parameter is not None else None
        return given is None or not given.texts or name in given.texts

    def _gate(self, guards: Iterable[Guard]) -> Guard | None:
        """The outermost interval around the code."""
        gates = [one for one in guards if one.is_test and one.holds and self._intervals.is_periodic(one.test)]
        return gates[-1] if gates else None


def _repeating(call: Call, loop: Loop | None) -> Loop | None:
    """The loop that repeats a call that leads to a step: ``for hook in self.hooks: hook.after_step()`` repeats none."""
    return next(iter(loop.loops), None) if loop is not None and _calls_element(call, loop) else loop


def _calls_element(call: Call, loop: Loop) -> bool:
    """Whether a call is a method call on a loop's element, by a literal or a computed name."""
    looked_up = call.callee
    if isinstance(looked_up, Call) and looked_up.called_name == "getattr" and looked_up.positional:
        return is_element(looked_up.positional[0], loop)
    return call.receiver is not None and is_element(call.receiver, loop)


def is_element(expr: Expr, loop: Loop) -> bool:
    """Whether an expression is the element of a loop, or a part of it."""
    at, seen = expr.plain, {expr}
    while at.kind == "part" and at.base is not None and at.base not in seen:
        seen.add(at.base)
        at = at.base.plain
    return at.kind == "elem" and at.base == loop.value
