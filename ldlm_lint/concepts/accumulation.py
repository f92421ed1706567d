"""Gradients that are added up over micro-batches: a backward pass for each of them, a step of the optimizer for several.

    loss.backward()                                     for part in batch.chunk(n): loss_of(part).backward()
    if (step + 1) % n == 0: optimizer.step()            optimizer.step()
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from ldlm_lint.concepts.intervals import Interval, Intervals
from ldlm_lint.concepts.losses import BackwardPasses
from ldlm_lint.concepts.optimizer_steps import OptimizerSteps
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Call, Expr, Guard
from ldlm_lint.program.walks import Through
from ldlm_lint.vocabulary.wrappers import TAKE_STRATEGY

if TYPE_CHECKING:
    from ldlm_lint.program.handles import Function, Loop

_PASS_ON = frozenset({"enumerate", "zip", "tqdm", "trange", "iter"})
_CHUNKS = frozenset({"chunk", "tensor_split", "array_split"})
_SPLIT = _CHUNKS | {"split"}
_FLAGS = ("need_update", "update_grad")
"""The parameters by which objects of other packages that run backward passes are told to step: timm's ``NativeScaler``."""

_PLUGIN = "gradient_accumulation_plugin"
_ENGINES = {"accelerate": (frozenset({"accelerate.Accelerator"}), "gradient_accumulation_steps"), "lightning": (TAKE_STRATEGY, "accumulate_grad_batches")}


@dataclass(frozen=True)
class Due:
    """When the optimizer steps: with a condition, or a flag that a function gets which steps or does not."""

    test: Guard | Expr
    interval: Interval

    @property
    def condition(self) -> Expr:
        """What is asked."""
        return self.test.test if isinstance(self.test, Guard) else self.test


@dataclass(frozen=True)
class Accumulation:
    """A backward pass that runs for each of ``count`` micro-batches of a step, and the ``call`` that leads to it in the
    loop over them, or in the function that is called for each: itself, or of a function that has it.

    ``due`` is None if the optimizer steps behind a loop over the micro-batches.
    """

    backward: Call
    call: Call
    count: Expr
    due: Due | None
    steps: tuple[Call, ...]

    @property
    def is_counted(self) -> bool:
        """Whether ``count`` is a number, rather than what holds the micro-batches or says how large they are."""
        loop = _loop(self.call)
        if self.due is not None or loop is None:
            return self.due is not None
        calls = (one for one in loop.value.unnamed.within if isinstance(one, Call))
        return any(self.count in one.positional and one.called_name in _CHUNKS | {"range", "trange"} for one in calls)


@dataclass(frozen=True)
class EngineSteps:
    """The call that makes an engine accumulate more than one micro-batch, and the setting as written."""

    call: Call
    text: str


class Accumulations(Concept):
    """Those of a program: one for each loop, or function that is called for each micro-batch."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._passes, self._intervals, self._optimizers = code[BackwardPasses], code[Intervals], code[OptimizerSteps]

    @cached_property
    def every(self) -> tuple[Accumulation, ...]:
        """All of them, each with the first of its backward passes."""
        return tuple(min(found, key=lambda one: one.call.place) for found in self._found.values())

    def passes_of(self, one: Accumulation) -> list[Accumulation]:
        """An accumulation once for each of its backward passes, such as those with and without a scaler; in a method that
        hands on, for those there."""
        every = sorted(self._found[_loop(one.call) or one.call.function], key=lambda one: one.call.place)
        return [replace(one, backward=backward) for one in every for backward in self._passes.handed_on_by(one.backward) or [one.backward]]

    @cached_property
    def _found(self) -> dict[Function | Loop, list[Accumulation]]:
        """By the loop or function around them."""
        found: dict[Function | Loop, list[Accumulation]] = defaultdict(list)
        for backward in self._passes.calls:
            for one in self._above(backward):
                found[_loop(one.call) or one.call.function].append(one)
        return dict(found)

    def _above(self, backward: Call) -> Iterator[Accumulation]:
        """Those on the way up from a backward pass to the callers of its function, until something steps or repeats it."""
        todo: list[tuple[Call, Due | None]] = [(backward, None)]
        if self._passes.steps_itself(backward):
            todo = [(backward, due) for due in self._told(backward)]
        seen = {backward}
        while todo:
            call, due = todo.pop()
            inside = [one for one in _beside(call) if not one.excludes(call)]
            steps = [one for one in inside if self._optimizers.leads_to_one(one)]
            resets = [one for one in inside if one.called_name == "zero_grad"]
            dues = [self._due(one, call) for one in steps]
            if (steps or due) and all((*dues, *(self._due(one, call) for one in resets))):
                first = due or dues[0]
                assert first is not None
                yield Accumulation(backward, call, first.interval.rounds, first, tuple(steps))
            elif not steps and not resets and due is None:
                yield from self._over_parts(backward, call)
            if not resets and due is None and _loop(call) is None:
                above = self._callers(call, steps)
                todo += [(one, told) for one, told in above.items() if one not in seen]
                seen.update(above)

    def by_engine(self, near: Call, engine: str) -> EngineSteps | None:
        """What makes Accelerate or Lightning accumulate more than one micro-batch, in the programs of a call."""
        makers, setting = _ENGINES[engine]
        for call in (one for one in self.code.calls(makers) if near.may_run_with(one)):
            for value in call.argument(setting).values:
                if _may_repeat(value):
                    return EngineSteps(call, f"{setting}={value.called_in(call.function)}")
            for made in (one.unnamed for one in call.argument(_PLUGIN).values):
                steps, each = (made.argument("num_steps", 0), made.argument("sync_each_batch")) if isinstance(made, Call) else (None, None)
                for value in steps.values if steps is not None and each is not None and (each.is_absent or each.only is False) else ():
                    if _may_repeat(value):
                        return EngineSteps(call, f"{_PLUGIN}=GradientAccumulationPlugin(num_steps={value.called_in(call.function)})")
        return None

    def uses_nothing_before(self, one: Accumulation) -> bool:
        """Whether nothing reads the gradients of a loop before its last micro-batch: one optimizer steps, and they are
        clipped, with the condition of the accumulation alone, and no step follows the loop."""
        loop, test = _loop(one.call), one.due.condition if one.due is not None else None
        if loop is None or test is None:
            return False
        clips = [call for call in loop.calls if call.called_name.startswith("clip_grad") or "unscale" in call.called_name]
        reads = [call for call in (*one.steps, *clips) if call != one.call]
        others = [call for call in one.call.function.calls if loop not in call.loops and self._optimizers.leads_to_one(call)]
        return (
            all(any(guard.is_test and guard.test.is_alike(test) for guard in call.guards) for call in reads)
            and len({call.text for call in one.steps}) <= 1
            and all(self._is_of_others(call, loop) for call in others)
        )

    def is_decided_at(self, one: Accumulation, place: Call) -> bool:
        """Whether the condition of an accumulation has its later outcome at an earlier call in its loop, too."""
        assert one.due is not None
        test = one.due.condition.unnamed
        parts, held = [test], list[Expr]()
        for part in parts:
            is_written_here = part.place >= test.place
            if (part.kind == "attr" and self._is_changed(part)) or (is_written_here and isinstance(part, Call) and part.called_name != "len"):
                return False
            parts += part.operands if is_written_here else []
            held += [] if is_written_here else part.origins(Through.NAMES)
        between = (event for event in one.call.function.events if event.kind == "bind" and place.place <= event.spot.place < test.place)
        return test.place > 0 and not any(event.expr.unnamed in held for event in between)

    def _is_changed(self, attribute: Expr) -> bool:
        return len(attribute.set_to) > 1 or bool(self.code.writes_of(attribute.name))

    def _due(self, event: Call, call: Call) -> Due | None:
        """The condition with which an event happens at the last micro-batch only, while a call is made for each."""
        around = call.guards
        for guard in event.guards:
            interval = self._intervals.at(guard, event.function) if guard not in around else None
            if interval is not None and interval.due is guard.holds and _may_repeat(interval.rounds):
                return Due(guard, interval)
        return None

    def _told(self, call: Call) -> Iterator[Due]:
        """When an object of another package steps, by the flag that it gets."""
        for value in (value for name, value in call.keywords if name in _FLAGS):
            interval = self._intervals.of(value)
            if interval is not None and interval.due and _may_repeat(interval.rounds):
                yield Due(value, interval)

    def _callers(self, call: Call, steps: list[Call]) -> dict[Call, Due | None]:
        """The calls of the function of a call, if it steps nothing or as a parameter tells it: with that, as an interval."""
        if not steps:
            return dict.fromkeys(call.function.callers)
        flags = [_flag(one, call) for one in steps]
        if None in flags or len(set(flags)) > 1 or flags[0] is None:
            return {}
        (parameter, holds), found = flags[0], dict[Call, Due | None]()
        for above in call.function.callers:
            value = above.given_for(parameter)
            interval = self._intervals.of(value) if value is not None else None
            if value is not None and interval is not None and interval.due is holds and _may_repeat(interval.rounds):
                found[above] = Due(value, interval)
        return found

    def _over_parts(self, backward: Call, call: Call) -> Iterator[Accumulation]:
        """A loop over micro-batches that steps and clears nothing, and a step behind it."""
        loop = _loop(call)
        count = _number_of(loop.value) if loop is not None and loop.kind == "for" else None
        if loop is None or count is None or not _may_repeat(count):
            return
        calls = call.function.calls
        behind = [one for one in calls[calls.index(call) + 1 :] if loop not in one.loops and set(loop.loops) <= set(one.loops)]
        steps = [one for one in behind if not one.excludes(call) and self._optimizers.leads_to_one(one) and not self._is_of_others(one, loop)]
        if steps:
            yield Accumulation(backward, call, count, None, tuple(steps))

    def _is_of_others(self, step: Call, loop: Loop) -> bool:
        """Whether a step behind a loop is in another one, which has backward passes of its own."""
        others = [one for one in step.loops if one not in loop.loops]
        return any(self._passes.lead_to_one(call) for one in others for call in one.calls)


def _loop(call: Call) -> Loop | None:
    return next(iter(call.loops), None)


def _beside(call: Call) -> list[Call]:
    """The other calls of the loop that a call is in, or else of its function."""
    loop = _loop(call)
    return [one for one in (loop.calls if loop is not None else call.function.calls) if one != call]


def _flag(step: Call, call: Call) -> tuple[Expr, bool] | None:
    """The parameter that lets a step happen after a call, and the truth that it then has."""
    around = call.guards
    for guard in step.guards:
        test, holds = guard.test.unnamed, guard.holds
        if test.operator == "Not":
            test, holds = test.operands[0].unnamed, not holds
        if guard.is_test and guard not in around and test.kind == "param":
            return test, bool(holds)
    return None


def _may_repeat(count: Expr) -> bool:
    """Whether there may be more than one micro-batch."""
    known = count.may_be()
    return not known.is_complete or not all(isinstance(one, int) and one <= 1 for one in known.constants) or len(known.constants) < len(known.value)


def _number_of(iterable: Expr) -> Expr | None:
    """What says how many micro-batches a loop has; None if it goes over the parts of one loss, or over something unknown."""
    value = iterable.unnamed
    if not isinstance(value, Call):
        return value if value.kind != "seq" else None
    if value.called_name in _PASS_ON | _SPLIT and value.positional:
        return _number_of(value.positional[0]) if value.called_name in _PASS_ON else value.positional[-1]
    if value.called_name == "range":
        return value.positional[0] if len(value.positional) == 1 else value
    return value if value.names else None
