"""How often code runs: in each training step, in some of them, once, or never.

    if step % 100 == 0:               # in some steps
        report(loss.item())
    if first is None:                 # once: the branch sets what it misses
        first = loss.item()
    run = self.show if not self.training else self.learn
    run(batch)                        # goes to `learn` in each training step
"""

from __future__ import annotations

from collections import defaultdict

from ldlm_lint.concepts.intervals import Intervals
from ldlm_lint.concepts.outcomes import Outcomes
from ldlm_lint.concepts.restarts import Restarts
from ldlm_lint.concepts.steps import Steps
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Call, Expr, Function, Guard
from ldlm_lint.program.modules import Module
from ldlm_lint.program.spots import Spot

_STEPS = frozenset({"step", "zero_grad", "clip_grad_norm_", "backward", "sync_gradients"})
_LEAVES = ("return", "break")
_ENDS_EARLY = ("return", "continue")
_Arms = dict[bool, Guard]
_Blocks = dict["Guard | None", dict[Expr, _Arms]]
"""The arms of tests, by the condition that they are under."""


class Rhythm(Concept):
    """Answers for the places of a program."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._steps = code[Steps]
        self._intervals = code[Intervals]
        self._restarts = code[Restarts]
        self._outcomes = code[Outcomes]
        self._exits = code[EarlyExits]
        self._behind: dict[Function, bool] = {}
        self._passed: dict[tuple[Guard, Function], bool] = {}
        self._rare: dict[tuple[Guard, Function], bool] = {}
        self._guarded: dict[Function, list[tuple[Call, list[Guard]]]] = {}
        """The calls of functions with the conditions around them."""

    def passes(self, spot: Spot) -> bool:
        """Whether the conditions around code let it run in a usual training step."""
        return all(self._passes(guard, spot.function) for guard in spot.guards)

    def _passes(self, guard: Guard, function: Function) -> bool:
        """Whether one condition lets the code of a function run; much code is under the same."""
        asked = (guard, function)
        if asked not in self._passed:
            self._passed[asked] = self._lets_pass(guard, function)
        return self._passed[asked]

    def _lets_pass(self, guard: Guard, function: Function) -> bool:
        if guard.ends == "raise" or guard.kind == "except":
            return False
        if not guard.is_test:
            return True
        test, holds, outcomes = guard.test, guard.holds, self._outcomes
        if holds is not None and outcomes.in_training(test) is (not holds):
            return False
        if guard.kind == "rest" and guard.ends == "after raise":
            return True
        if outcomes.of_alarm(test) is holds or outcomes.at_start(test) is holds:
            return False
        if holds is not None and outcomes.of_details(test) is holds:
            return self.steps_under(guard, function)
        is_rare = self._intervals.is_periodic(test) and holds is self._intervals.rare_outcome(test)
        if (is_rare or self._restarts.is_one(guard, function)) and not self.steps_under(guard, function):
            return False
        return outcomes.may_hold(guard)

    def is_exception(self, call: Call) -> bool:
        """Whether a call is under a failure, an alarm or the test of one step."""
        return any(guard.kind == "except" or self._is_exception(guard) for guard in call.guards)

    def _is_exception(self, guard: Guard) -> bool:
        return guard.is_test and guard.holds in (self._outcomes.of_alarm(guard.test), self._outcomes.at_start(guard.test))

    def steps_under(self, guard: Guard, function: Function) -> bool:
        """Whether an optimizer steps under a guard or an equal one: the guard ends an accumulation and is not a logging
        interval."""
        if function not in self._guarded:
            self._guarded[function] = [(call, call.guards) for call in function.calls]
        guarded = self._guarded[function]
        calls = [(call, guards) for call, guards in guarded if self._is_of_step(call)]
        innermost = {guards[0] for _, guards in guarded if guards} - {guard} if calls else set()
        alike = [one for one in innermost if one.kind == guard.kind and one.holds == guard.holds and one.test.is_alike(guard.test)]
        return any(self._step_right_under(one, calls) for one in (guard, *alike))

    def _is_of_step(self, call: Call) -> bool:
        return self._steps.is_leading(call) or (call.called_name in _STEPS and call.receiver is not None)

    def _step_right_under(self, guard: Guard, calls: list[tuple[Call, list[Guard]]]) -> bool:
        inside: set[str] = set()
        outside: set[str] = set()
        for call, guards in calls:
            (inside if guard in guards else outside).add("backward" if self._steps.is_leading(call) else call.called_name)
        # While another optimizer clears its gradients and steps in each iteration, this one follows a schedule: a
        # regularization every 16 steps, a generator every fifth.
        is_scheduled = outside >= {"step", "zero_grad"} and (inside == {"step"} or "backward" in inside)
        return bool(inside) and not is_scheduled

    def is_rare(self, spot: Spot) -> bool:
        """Whether code runs far less often than the function that it is in."""
        if any(self._is_rare_under(guard, spot.function) for guard in spot.guards):
            return True
        return self._exits.are_before(spot) and not self._steps_behind_exits(spot.function)

    def _is_rare_under(self, guard: Guard, function: Function) -> bool:
        asked = (guard, function)
        if asked not in self._rare:
            self._rare[asked] = self._lets_through_rarely(guard, function) and not self.steps_under(guard, function)
        return self._rare[asked]

    def _steps_behind_exits(self, function: Function) -> bool:
        """Whether what leads to the backward passes is behind such a test itself: then the rest decides what a step is."""
        if function not in self._behind:
            leading = (call for call in function.calls if self._steps.is_leading(call))
            self._behind[function] = any(self._exits.are_before(call.spot) for call in leading)
        return self._behind[function]

    def _lets_through_rarely(self, guard: Guard, function: Function) -> bool:
        if not guard.is_test or guard.holds is None:
            return False
        if self._outcomes.rare(guard.test) is guard.holds:
            return True
        if guard.kind == "if" and guard.ends in _LEAVES and self._ends_training(guard, function):
            return True
        return self._restarts.is_set_once(guard, function) or self._restarts.is_deadline(guard, function)

    def _ends_training(self, guard: Guard, function: Function) -> bool:
        """Whether a block that leaves is right in the loop of steps."""
        inside = (call.loops for call in function.calls if call.guards[:1] == [guard])
        loops = next(inside, [])
        return bool(loops) and self._steps.repeats(loops[0].value)

    def targets_in_steps(self, call: Call) -> list[Function]:
        """The functions that a call may go to in a training step."""
        targets = call.targets
        if len(targets) < 2:
            return targets
        ways, is_left = self._ways(call.callee, call.function)
        wanted = {function for way in ways for function in way.targets_if_called} if is_left else set()
        return [one for one in targets if one in wanted] or targets

    def _ways(self, callee: Expr, function: Function) -> tuple[list[Expr], bool]:
        """What an expression may stand for in a step, and whether it may stand for anything else outside."""
        found: list[Expr] = []
        is_left = False
        todo, seen = [callee], {callee}
        while todo:
            one = todo.pop()
            every = one.ways
            if not every:
                found.append(one)
            taken = [way for way in every if self._is_taken(one, way, function)]
            is_left = is_left or len(taken) < len(every)
            todo += [way for way in taken if way not in seen]
            seen.update(taken)
        return found, is_left

    def _is_taken(self, of: Expr, way: Expr, function: Function) -> bool:
        """Whether an expression may be a certain alternative in a step."""
        if of.test is not None and of.ways[0] != of.ways[1]:
            return self._outcomes.in_training(of.test) is not (way != of.ways[0])
        bound = [event.spot for event in way.events if event.kind == "bind" and event.spot.function == function] if of.kind == "phi" else []
        return not bound or any(map(self.passes, bound))


class EarlyExits(Concept):
    """Places behind tests that a usual step does not pass: the function or the iteration has ended before."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._outcomes = code[Outcomes]
        self._files: dict[int, _Blocks] = {}
        self._left: dict[tuple[int, Guard | None], list[tuple[Guard, _Arms]]] = {}

    def are_before(self, spot: Spot) -> bool:
        """Whether a block around a place in its function has such a test before it."""
        around, begins, line = set(spot.guards), spot.function.spot.place, spot.line
        block = _block(spot.guard)
        while True:
            for first, arms in self._left_in(spot.function.module, block):
                # A place in an arm of a test is not after it; the test itself runs in each step.
                if begins <= first.begin and first.line < line and around.isdisjoint(arms.values()):
                    return True
            if block is None:
                return False
            block = _block(block.outer)

    def _left_in(self, module: Module, block: Guard | None) -> list[tuple[Guard, _Arms]]:
        """The tests right in a block that the code behind them is not reached from: the first arm, and all arms."""
        asked = (module.index, block)
        if asked not in self._left:
            blocks = self._in(module)
            left = (arms for test, arms in blocks.get(block, {}).items() if self._is_left(blocks, test, arms))
            self._left[asked] = [(min(arms.values(), key=lambda one: one.begin), arms) for arms in left]
        return self._left[asked]

    def _is_left(self, blocks: _Blocks, test: Expr, arms: _Arms) -> bool:
        """Whether of both outcomes each leaves, or is rare, and one of them leaves."""
        rare = self._outcomes.rare(test)
        leaves = {holds for holds, arm in arms.items() if self._leaves(blocks, arm)}
        return bool(leaves) and all(holds in leaves or rare is holds for holds in (True, False))

    def _leaves(self, blocks: _Blocks, arm: Guard) -> bool:
        return arm.ends in _ENDS_EARLY or any(self._is_left(blocks, test, arms) for test, arms in blocks.get(arm, {}).items())

    def _in(self, module: Module) -> _Blocks:
        if module.index not in self._files:
            found: _Blocks = defaultdict(lambda: defaultdict(dict))
            for guard in self.code.guards_in(module):
                if guard.kind == "if" and guard.holds is not None:
                    found[_block(guard.outer)][guard.test][guard.holds] = guard
            self._files[module.index] = dict(found)
        return self._files[module.index]


def _block(guard: Guard | None) -> Guard | None:
    """The condition of the block that something is in: code after its early exit is a part of it."""
    while guard is not None and guard.kind == "rest":
        guard = guard.outer
    return guard


__all__ = ["EarlyExits", "Rhythm"]
