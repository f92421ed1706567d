"""Schedules of the learning rate: the calls that step them, the optimizers that they change, and the calls that step those."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from ldlm_lint.budget import deep
from ldlm_lint.patterns import lazily
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Call, Expr, Function, Guard, Loop, leading_to
from ldlm_lint.program.walks import Through
from ldlm_lint.vocabulary import step_names

_TORCH = "torch.optim.lr_scheduler."
_MAKERS = ("transformers.get_", "transformers.optimization.get_", "diffusers.optimization.get_")
_PLATEAU = "ReduceLROnPlateau"
_OPTIMIZERS = "torch.optim."
_OF_LIGHTNING = frozenset({"lr_schedulers"})
_BASE = lazily(r"(?:^|\.)_?LRScheduler$|LR$")
_COMPUTES = frozenset({"backward", "manual_backward", "zero_grad"})
_WORDS = lazily(r"[a-z]+|[A-Z]+(?![a-z])|[A-Z][a-z]+|\d+")
_MOST = 500
"""Steps of one function: code that was not written by hand is left alone."""


class Kind(enum.Enum):
    """What a call of a training step does."""

    OPTIMIZER = "steps an optimizer"
    SCHEDULE = "steps a schedule"
    UNKNOWN = "may step an optimizer"
    COMPUTES = "computes or clears gradients"


class Step(NamedTuple):
    """A call of a training step: the call in the function looked at that leads to it (``site``), and the conditions and loops on the
    way to it, those of ``site`` included."""

    kind: Kind
    call: Call
    site: Call
    guards: tuple[Guard, ...]
    loops: tuple[Loop, ...]

    @property
    def is_beside(self) -> bool:
        """Whether it is written in the file of ``site``."""
        return self.call.module is self.site.module


class EarlyStep(NamedTuple):
    """A step of a schedule in each round of a loop before that of its optimizer, in one function (by their ``site``s); the schedule
    is known if the file shows its maker."""

    schedule: Step
    optimizer: Step
    is_known: bool
    is_too_often: bool
    """Whether a counter decides about the optimizer alone: it steps once for several rounds."""


class Schedules(Concept):
    """The schedules of a program."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._steps: dict[Function, list[Step]] = {}

    @cached_property
    def early(self) -> list[EarlyStep]:
        """The steps of schedules that come too early."""
        with deep():
            found = (self._early(call) for call in self.code.calls_named("step") if self.is_schedule_step(call))
            return [one for one in found if one is not None]

    def is_schedule_step(self, call: Call) -> bool:
        """Whether a call steps a schedule of the learning rate, as torch's are: without an argument."""
        stepped = _stepped(call)
        if stepped is None or call.arguments:
            return False
        made, owners = stepped.made_by, stepped.classes_of
        if made or owners:
            return any(map(_is_schedule, made)) or any(map(_BASE.search, {base for owner in owners for base in owner.outside_bases}))
        plain = stepped.plain
        if isinstance(plain, Call) and plain.called_name in _OF_LIGHTNING:
            return True
        name = _telling_name(stepped, call)
        return step_names.SCHEDULE.search(name) is not None and step_names.NO_SCHEDULE.search(name) is None

    def makers(self, call: Call) -> list[Call]:
        """The calls of torch and of libraries that make the schedule that a call steps."""
        return _makers(call)

    def is_known(self, call: Call) -> bool:
        """Whether the schedule that a call steps is surely one of torch's kind."""
        stepped = _stepped(call)
        plain = stepped.plain if stepped is not None else None
        return bool(stepped is not None and any(map(_is_schedule, stepped.made_by))) or (isinstance(plain, Call) and plain.called_name in _OF_LIGHTNING)

    def _early(self, call: Call) -> EarlyStep | None:
        """The step of a schedule if that of its optimizer follows in the innermost loop around it, up through its callers."""
        site, seen = call, {call.function}
        while True:
            around = [one for one in site.loops if not _is_over_parts(one)]
            steps = self.steps_in(site.function)
            mine = next((one for one in steps if one.call == call and one.site == site), None)
            if mine is None:
                return None
            loop = around[0] if around else None
            after = self._after(mine, steps, loop)
            if after is None or (after and loop is not None):
                return self._judged(mine, after[0], loop) if after else None
            if after and (self._is_one_round(after[0], steps) or self._is_repeated(site.function, frozenset())):
                return self._judged(mine, after[0], None)
            callers = site.function.callers
            if loop is not None or site.function.is_module or len(callers) != 1 or callers[0].function in seen:
                return None
            site = callers[0]
            seen.add(site.function)

    def _after(self, mine: Step, steps: Sequence[Step], loop: Loop | None) -> list[Step] | None:
        """The steps of the schedule's optimizer that follow it, surely before possibly; None if one may come before it."""
        at = steps.index(mine)
        before = [one for one in steps[:at] if not _exclude(one, mine)]
        driven = [one for one in steps if one.kind is Kind.OPTIMIZER and _drives(mine, one, steps) is not False]
        unknown = [one for one in before if one.kind is Kind.UNKNOWN and (loop is None or loop in one.loops)]
        if unknown or any(one in driven for one in before):
            return None
        return [one for one in steps[at + 1 :] if one in driven and (loop is None or loop in one.loops) and not _exclude(one, mine)]

    def _judged(self, mine: Step, step: Step, loop: Loop | None) -> EarlyStep | None:
        """The step, unless a counter decides about it, or the schedule is new in each round."""
        makers = _makers(mine.call)
        names = {event.name for event in mine.site.function.events if event.kind == "bind" and loop is not None and event.spot.is_in(loop)}
        own = [guard for guard in mine.guards if not any(_is_same(guard, other) for other in step.guards)]
        if any(_counts(guard, names) for guard in own):
            return None
        if any(maker.function == mine.site.function and (loop is None or loop in maker.loops) for maker in makers):
            return None
        plain = mine.call.receiver.plain if mine.call.receiver is not None else None
        is_known = bool(_makers_beside(mine.call)) or (isinstance(plain, Call) and plain.called_name in _OF_LIGHTNING)
        only = [guard for guard in step.guards if not any(_is_same(guard, other) for other in mine.guards)]
        return EarlyStep(mine, step, is_known, any(_counts(guard, names) for guard in only))

    @staticmethod
    def _is_one_round(step: Step, steps: Sequence[Step]) -> bool:
        """Whether a function without a loop is what a training runs for each batch: it computes gradients and steps once."""
        return all(map(_is_over_parts, step.loops)) and any(one.kind is Kind.COMPUTES and not one.loops for one in steps)

    def _is_repeated(self, function: Function, above: frozenset[Function]) -> bool:
        return function not in above and any(call.loops or self._is_repeated(call.function, above | {function}) for call in function.callers)

    def steps_in(self, function: Function) -> list[Step]:
        """The steps of a function, also in functions of the project that it calls, in the order in which they run."""
        if function not in self._steps:
            found = list(self._run_by(function, None, (), (), frozenset([function])))
            self._steps[function] = found if len(found) <= _MOST else []
        return self._steps[function]

    def _run_by(self, function: Function, site: Call | None, guards: tuple[Guard, ...], loops: tuple[Loop, ...], above: frozenset[Function]) -> Iterator[Step]:
        for call in function.calls:
            kind = self._kind(call)
            inner = [one for one in call.targets if one in self._leading and one not in above] if kind is None else []
            if kind is None and not inner and not (not call.targets and _may_step(call)):
                continue
            here, around = (*call.guards, *guards), (*call.loops, *loops)
            if kind is not None or not inner:
                yield Step(kind or Kind.UNKNOWN, call, site or call, here, around)
            for target in inner:
                yield from self._run_by(target, site or call, here, around, above | {target})

    @cached_property
    def _leading(self) -> frozenset[Function]:
        """The functions that may lead to a step."""
        calls = self.code.calls_named("step", *_COMPUTES)
        return leading_to(call.function for call in calls if call.receiver is not None)

    def _kind(self, call: Call) -> Kind | None:
        if call.called_name in _COMPUTES and call.receiver is not None:
            return Kind.COMPUTES
        if self.is_schedule_step(call):
            return Kind.SCHEDULE
        return Kind.OPTIMIZER if _is_optimizer_step(call) else None


def _stepped(call: Call) -> Expr | None:
    """The object whose ``step`` is called; None for another call."""
    return call.receiver if call.callee.kind == "attr" and call.called_name == "step" else None


def subject(call: Call) -> str:
    """What a call steps, as written; a scaler of gradients steps its argument."""
    stepped = _stepped(call)
    if stepped is not None and call.positional and _is_scaler(stepped, call):
        return call.text.partition(".step(")[2].partition(",")[0].rstrip(") \n")
    return call.callee.text.rpartition(".")[0].rstrip()


def _is_scaler(stepped: Expr, call: Call) -> bool:
    made = stepped.made_by
    return any(name.endswith("GradScaler") for name in made) if made else step_names.SCALER.search(_last_word(call.callee.text.rpartition(".")[0])) is not None


def _is_optimizer_step(call: Call) -> bool:
    stepped = _stepped(call)
    if stepped is None:
        return False
    if call.positional and _is_scaler(stepped, call):
        return True
    made, owners = stepped.made_by, stepped.classes_of
    if made or owners:
        outside = {name for owner in owners for name in owner.outside_bases}
        return any(map(_is_optimizer, {*made, *outside}))
    name = _telling_name(stepped, call)
    return step_names.OPTIMIZER.search(name) is not None and step_names.NO_OPTIMIZER.search(name) is None


def _may_step(call: Call) -> bool:
    """Whether a call of unknown code may step an optimizer, by its name."""
    name = call.called_name
    if name == "step":
        return call.receiver is not None and step_names.NEVER_TRAINED.search(_last_word(subject(call))) is None
    if name in ("train", "run"):
        return bool(call.arguments) and (not call.positional or call.positional[0].kind != "const")
    return not name[:1].isupper() and step_names.MAY_STEP.search(name) is not None and step_names.STEPS_NOTHING.search(name) is None


def _telling_name(stepped: Expr, call: Call) -> str:
    """The name of an object; of what a loop takes that of the collection: ``schedulers``."""
    plain = stepped.plain
    part = plain.part
    if plain.kind == "part" and plain.base is not None:
        plain = plain.base.plain
    taken = plain.base if plain.kind == "elem" else None
    if isinstance(taken, Call):
        if taken.called_name in ("values", "items") and taken.receiver is not None:
            taken = taken.receiver
        elif taken.called_name in ("zip", "enumerate") and taken.positional:
            taken = taken.positional[min(part or 0, len(taken.positional) - 1) if taken.called_name == "zip" else 0]
    return (taken.last_name if taken is not None else "") or _last_word(call.callee.text.rpartition(".")[0])


def _is_over_parts(loop: Loop) -> bool:
    """Whether a loop goes through schedules or optimizers: it repeats nothing."""
    return loop.kind != "while" and any(step_names.SEVERAL.search(one.last_name) for one in loop.value.within)


def _exclude(one: Step, other: Step) -> bool:
    """Whether conditions let only one of two steps run in a round."""
    facts = [fact for guard in one.guards if guard not in other.guards for fact in guard.facts]
    return any(fact.contradicts(its) for guard in other.guards if guard not in one.guards for its in guard.facts for fact in facts)


def _is_same(one: Guard, other: Guard) -> bool:
    return one == other or (one.is_test and other.is_test and one.holds is other.holds and one.test.is_alike(other.test))


def _counts(guard: Guard, names: set[str]) -> bool:
    """Whether a condition depends on the progress of the training: a counter, or a variable of the loop."""
    if not guard.is_test:
        return False
    text = guard.test.text or guard.test.name
    compares = re.search(r"[<>%]|==|(?<!\w)\d", text) is not None
    return not names.isdisjoint(re.findall(r"[A-Za-z_]\w*", text)) or (step_names.PROGRESS.search(text) is not None and (compares or " " not in text))


def _drives(schedule: Step, step: Step, steps: Sequence[Step]) -> bool | None:
    """Whether a schedule sets the learning rate of the optimizer that steps; None if unknown."""
    mine, its = _optimizers_of(schedule.call), _optimizers_stepped(step.call)
    if mine and its:
        return not mine.isdisjoint(its)
    stepped = {_last_word(subject(one.call)) for one in steps if one.kind is Kind.OPTIMIZER}
    if len(stepped) == 1:
        return True
    names = _names_of_optimizers(schedule.call)
    if names:
        return _last_word(subject(step.call)) in names or (None if len(names) > 1 else False)
    own, other = _particular(subject(schedule.call)), _particular(subject(step.call))
    return own == other if own and other else None


def _makers(step: Call) -> list[Call]:
    """The calls that make the schedule that is stepped."""
    stepped = _stepped(step)
    return [] if stepped is None else [one for name in sorted(stepped.made_by) if _is_schedule(name) for one in stepped.made_at(name)]


def _makers_beside(step: Call) -> list[Call]:
    """Those in the same file that code around the step binds to its name."""
    stepped = _stepped(step)
    links = Through.NAMES | Through.OUTSIDE | Through.ATTRIBUTES
    return [] if stepped is None else [one for one in stepped.origins(links) if isinstance(one, Call) and one.module is step.module and any(map(_is_schedule, one.made_by))]


def _optimizers_of(step: Call) -> frozenset[Call]:
    given = (value for maker in _makers(step) for value in maker.argument("optimizer", 0).values)
    return frozenset(one for value in given for one in _made_optimizers(value))


def _names_of_optimizers(step: Call) -> set[str]:
    given = [value for maker in _makers(step) for value in maker.argument("optimizer", 0).values]
    return {name for value in given for name in (value.name, *([] if value.kind == "param" else value.names)) if name}


def _optimizers_stepped(step: Call) -> frozenset[Call]:
    stepped = _stepped(step)
    return frozenset(one for value in (stepped, *step.positional[:1]) if value is not None for one in _made_optimizers(value))


def _made_optimizers(value: Expr) -> list[Call]:
    return [one for name in sorted(value.made_by) if _is_optimizer(name) for one in value.made_at(name)]


def _last_word(text: str) -> str:
    found = re.findall(r"[A-Za-z_]\w*", text.partition("[")[0])
    return found[-1] if found else text


def _particular(text: str) -> frozenset[str]:
    """The distinguishing part of a name: ``g`` of ``optimizer_G`` and ``scheduler_g``."""
    return frozenset(word.lower() for word in _WORDS.findall(text)) - step_names.GENERIC


def _is_schedule(name: str) -> bool:
    return (name.startswith(_TORCH) and not name.endswith(_PLATEAU)) or (name.startswith(_MAKERS) and "schedule" in name)


def _is_optimizer(name: str) -> bool:
    return name.startswith(_OPTIMIZERS) and not name.startswith(_TORCH)


__all__ = ["EarlyStep", "Kind", "Schedules", "Step", "subject"]
