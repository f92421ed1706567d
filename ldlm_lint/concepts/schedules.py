"""Schedules of the learning rate: the calls that step them, the optimizers they change, and the calls that step
those.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import NamedTuple

from ldlm_lint.budget import deep
from ldlm_lint.concepts.read_before import Earlier
from ldlm_lint.concepts.updates import Updates
from ldlm_lint.patterns import lazily
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Call, Expr, Function, Guard, Loop

_TORCH = "torch.optim.lr_scheduler."
_MAKERS = ("transformers.get_", "transformers.optimization.get_", "diffusers.optimization.get_")
_PLATEAU = "ReduceLROnPlateau"
_OPTIMIZERS = "torch.optim."
_GROWS = frozenset({"Gt", "GtE", "Lt", "LtE", "NotEq"})
# For an unknown object only its name is known.
_OPTIMIZER = lazily(r"optim|(?:^|_)opt(?:_|\d|$)|scaler", re.I)


class EarlyStep(NamedTuple):
    """A call that steps a schedule, in each round of a loop (by the call there, ``site``), before the one that steps its
    optimizer."""

    step: Call
    site: Call
    optimizer: Call


class Schedules(Concept):
    """The schedules of torch whose optimizers the program shows."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._order = Earlier(lambda _: False, self._may_step_optimizer)

    @cached_property
    def _updates(self) -> Updates:
        return self.code[Updates]

    def early(self) -> Iterator[EarlyStep]:
        """The steps of schedules that come too early."""
        for step in self.code.calls_named("step"):
            optimizers = _optimizers_behind(step)
            if optimizers:
                with deep():
                    found = self._in_loop_above(step, optimizers)
                if found is not None:
                    yield EarlyStep(step, *found)

    def stepping_below(self, call: Call, *, optimizer: bool) -> Call | None:
        """The call that steps an optimizer, or else a schedule, in a function that a call goes to, from the first
        iteration of its loop on."""
        is_one: Callable[[Call], bool] = _is_optimizer_step if optimizer else _is_schedule_step
        todo, seen = list(reversed(call.targets)), set[Function]()
        while todo:
            function = todo.pop()
            if function in seen:
                continue
            seen.add(function)
            found = next((one for one in function.calls if is_one(one) and not any(map(_waits, one.guards))), None)
            if found is not None:
                return found
            todo += reversed([target for one in function.calls for target in one.targets])
        return None

    def _in_loop_above(self, step: Call, optimizers: frozenset[Call]) -> tuple[Call, Call] | None:
        """The call in the innermost loop around a step that leads to it, and the one that steps the optimizer after
        it.
        """
        call, seen = step, {step.function}
        while True:
            loop = next(iter(call.loops), None)
            around = loop.guards if loop is not None else []
            if any(guard.kind != "with" for guard in call.guards if guard not in around):
                return None
            if loop is not None:
                behind = self._behind(call, loop, optimizers)
                return None if behind is None else (call, behind)
            callers = call.function.callers
            if call.function.is_module or len(callers) != 1 or callers[0].function in seen:
                return None
            call = callers[0]
            seen.add(call.function)

    def _behind(self, call: Call, loop: Loop, optimizers: frozenset[Call]) -> Call | None:
        """The call that steps one of the optimizers after another call in a loop; None if one before it may."""
        inside = loop.calls
        if any(self._order.may_end(one) for one in inside if one.end <= call.place):
            return None
        stepping = Earlier(lambda one: _steps(one, optimizers), lambda _: False)
        after = (stepping.run_by(one) for one in inside if one.place >= call.end)
        return next((one for one in after if one is not None), None)

    def _may_step_optimizer(self, call: Call) -> bool:
        return call.callee.kind == "attr" and call.called_name == "step" and not self._updates.steps_schedule(call)


def _stepped(call: Call) -> Expr | None:
    """The object whose ``step`` is called; None for another call."""
    return call.receiver if call.callee.kind == "attr" and call.called_name == "step" else None


def _is_optimizer_step(call: Call) -> bool:
    stepped = _stepped(call)
    if stepped is None:
        return False
    made, owners = stepped.made_by, stepped.classes_of
    if made or owners:
        outside = {name for owner in owners for name in owner.outside_bases}
        return any(map(_is_optimizer, {*made, *outside})) or any(name.endswith("GradScaler") for name in made)
    return _OPTIMIZER.search(stepped.last_name) is not None


def _is_schedule_step(call: Call) -> bool:
    stepped = _stepped(call)
    if stepped is None or call.positional:
        return False
    made = stepped.made_by
    return any(map(_is_schedule, made)) if made else "sched" in stepped.last_name.lower()


def _waits(guard: Guard) -> bool:
    """Whether code is under a test for a later step or epoch: ``if iteration > 1``."""
    return guard.kind in ("if", "rest") and any(map(_counts, _parts(guard.test)))


def _parts(test: Expr) -> Iterator[Expr]:
    """A test, and the operands of its comparisons."""
    yield test
    for one in test.operands if test.kind in ("bool", "cmp", "not", "copy") else ():
        yield from _parts(one)


def _counts(part: Expr) -> bool:
    """Whether a part of a test compares a number that grows, or takes a remainder."""
    if part.kind == "cmp":
        texts = any(side.constant is None or isinstance(side.constant, str) for side in part.operands)
        return not texts and not _GROWS.isdisjoint(part.operators)
    return part.operator == "Mod"


def _optimizers_behind(step: Call) -> frozenset[Call]:
    """The calls that make the optimizers that a schedule changes; empty if a call steps no schedule of torch."""
    stepped = _stepped(step)
    made = stepped.made_by if stepped is not None and not step.arguments else frozenset()
    if stepped is None or not made or not all(map(_is_schedule, made)) or not stepped.is_made_outside:
        return frozenset()
    makers = [one for name in sorted(made) for one in stepped.made_at(name)]
    return frozenset(one for maker in makers for given in maker.argument("optimizer", 0).values for one in _made_optimizers(given))


def _made_optimizers(value: Expr) -> list[Call]:
    return [one for name in sorted(value.made_by) if _is_optimizer(name) for one in value.made_at(name)]


def _steps(call: Call, optimizers: frozenset[Call]) -> bool:
    """Whether a call steps one of the optimizers, directly or through a scaler of gradients."""
    stepped = _stepped(call)
    return stepped is not None and any(not optimizers.isdisjoint(_made_optimizers(one)) for one in (stepped, *call.positional[:1]))


def _is_schedule(name: str) -> bool:
    return (name.startswith(_TORCH) and not name.endswith(_PLATEAU)) or (name.startswith(_MAKERS) and "schedule" in name)


def _is_optimizer(name: str) -> bool:
    return name.startswith(_OPTIMIZERS) and not name.startswith(_TORCH)


__all__ = ["EarlyStep", "Schedules"]
