"""The loops of a training: step loops and those around them, also in callers; and loops that train one model after the
other, such as folds, members and trials."""

from __future__ import annotations

from functools import cached_property

from ldlm_lint.concepts.losses import BackwardPasses
from ldlm_lint.concepts.steps import Steps
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Call, Expr, Function, Loop
from ldlm_lint.program.spots import Spot

_OFTEN = frozenset({"backward", "forward", "run", "step", "update", "__call__"})
"""Names that methods of many classes have."""
_PARTS = frozenset({"copy", "part", "item"})


class TrainingLoops(Concept):
    """Answers for the calls and counters of a program."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._steps = code[Steps]
        self._backward = code[BackwardPasses]
        self._anew: dict[Loop, bool] = {}

    def around(self, call: Call) -> Spot | None:
        """Where the nearest loop is that trains and runs a call, or the function around it that a framework repeats."""
        todo, seen = [call], {call}
        while todo:
            one = todo.pop(0)
            function = one.function
            found = next((loop.spot for loop in one.loops if self._trains(loop)), None)
            if found is not None or self._steps.is_whole(function):
                return found or function.spot
            above = [] if function.is_module else [caller for caller in function.callers if caller not in seen]
            seen.update(above)
            todo += above
        return None

    def are_below(self, function: Function) -> bool:
        """Whether a function leads to a step or a backward pass."""
        return function in self._leading

    def _trains(self, loop: Loop) -> bool:
        """Whether a step or a backward pass is in a loop, or a call that leads to one."""
        is_one = self._steps.are_in_loop(loop) or any(loop in one.loops for one in self._backward.calls)
        is_leading = any(one in self._may_train or not self._leading.isdisjoint(one.targets) for one in loop.calls)
        # ``for loss in enumerate(self.steps())``: a generator runs in the loop over it.
        drawn = (target for one in (loop.value.unnamed, *loop.value.unnamed.operands) if isinstance(one, Call) for target in one.targets)
        return is_one or is_leading or any(one.is_generator and one in self._leading for one in drawn)

    @cached_property
    def _leading(self) -> set[Function]:
        """The functions that lead to a step or a backward pass."""
        found = {*self._steps.functions, *(one.function for one in (*self._backward.calls, *self._may_train))}
        todo = list(found)
        while todo:
            function = todo.pop()
            above = {call.function for call in function.callers} - found if not function.is_module else set()
            found |= above
            todo += above
        return found

    @cached_property
    def _may_train(self) -> frozenset[Call]:
        """The calls of a method which runs a backward pass, of an object of unknown type."""
        methods = {one.function.name for one in self._backward.calls if one.function.owner is not None} - _OFTEN
        return frozenset(call for call in self.code.calls_named(*methods) if call.receiver is not None and not call.targets)

    def counts_models(self, counter: Expr) -> bool:
        """Whether a counter numbers iterations which each create the optimizer that they step: there are as many as models."""
        loop = loop_of(counter)
        if loop is None:
            return False
        if loop not in self._anew:
            self._anew[loop] = _trains_another(loop)
        return self._anew[loop]


def _trains_another(loop: Loop) -> bool:
    calls = loop.calls
    steps = [one for one in calls if one.called_name == "step"]
    if steps:
        return any(_optimizer_of(one) in calls for one in steps)
    # The functions that the iterations lead to, down to those that step.
    todo = [target for call in calls for target in call.targets]
    seen = set(todo)
    while todo:
        own = todo.pop().calls
        steps = [one for one in own if one.called_name == "step"]
        if any(_optimizer_of(one) in own for one in steps):
            return True
        fresh = {target for call in own if not steps for target in call.targets} - seen
        seen |= fresh
        todo += fresh
    return False


def loop_of(counter: Expr) -> Loop | None:
    """The loop that a value is the element, or the number, of."""
    at = counter
    while at.kind in ("copy", "part", "op") or (isinstance(at, Call) and at.positional and at.called_name in ("str", "int")):
        at = at.positional[0] if isinstance(at, Call) else at.operands[0]
    return at.loop


def _optimizer_of(step: Call) -> Call | None:
    """The call that creates the receiver of a method: ``optimizer = Adam(…)``, ``model, optimizer = build()``."""
    at = step.receiver
    # A value that a loop only changes, ``model = merged(model)``, exists before it.
    while at is not None and at.kind in _PARTS:
        at = at.base
    return at if isinstance(at, Call) else None


__all__ = ["TrainingLoops", "loop_of"]
