"""Schedulers that step at the wrong time: before the optimizer, or for every micro-batch."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from astroid import nodes

from ldlm_lint.checkers.accumulating import MicroBatches, micro_batches
from ldlm_lint.checkers.step_conditions import counts
from ldlm_lint.checkers.step_events import Event, Kind
from ldlm_lint.checkers.step_names import last_name, values_of
from ldlm_lint.patterns import lazily
from ldlm_lint.python.calls import Arguments
from ldlm_lint.python.values import only_binding
from ldlm_lint.python.walks import nodes_of

_COLLECTION = lazily(r"sched|optim|opts", re.I)
_WORDS = lazily(r"[a-z]+|[A-Z]+(?![a-z])|[A-Z][a-z]+|\d+")
_GENERIC = frozenset({"lr", "sched", "scheduler", "schedulers", "schedule", "optim", "optimizer", "optimizers", "opt", "opts", "self"})
_MICRO_STEPS = lazily(r"\blen\(|steps_per_epoch|num_batches|batches_per|iters_per|loader")
_ACCUMULATES = lazily(r"accum|micro|updates?\b|update_steps|optimizer_steps|grad_acc", re.I)
_DEPTH = 4


class Early(NamedTuple):
    """A scheduler that steps before the optimizer has; ``repeated`` where that depends on the function being called
    again."""

    schedule: Event
    step: Event
    repeated: bool


class Frequent(NamedTuple):
    """A scheduler that steps for every micro-batch."""

    schedule: Event
    micro: MicroBatches


def frequent_schedules(events: Sequence[Event]) -> Iterator[Frequent]:
    """The schedulers that step once for each micro-batch, unless their schedule is shown to count these."""
    for micro in micro_batches(events):
        for event in events:
            if event.kind is Kind.SCHEDULE and micro.repeats(event) and not _counts_batches(event, micro):
                names = _bound_in(micro.backward.loops[-1]) if micro.backward.loops else frozenset()
                own = event.conditions - micro.backward.conditions
                if not any(counts(one, names) or "sync" in one[0] for one in own):
                    yield Frequent(event, micro)


def _counts_batches(event: Event, micro: MicroBatches) -> bool:
    """Whether the schedule's length is computed from the number of batches, not divided by the number of
    micro-batches.
    """
    call = _construction(event)
    if call is None:
        return False
    text = " ".join(_written_out(one) for one in (*call.args[1:], *(keyword.value for keyword in call.keywords)))
    count = micro.count.as_string().rpartition(".")[2]
    divides = _ACCUMULATES.search(text) is not None or re.search(rf"\b{re.escape(count)}\b", text) is not None
    return _MICRO_STEPS.search(text) is not None and not divides


def _written_out(node: nodes.NodeNG, depth: int = 0) -> str:
    """The text of an expression, and of its variables' values."""
    found = [node.as_string()]
    for name in nodes_of(node, nodes.Name) if depth < _DEPTH else ():
        value = only_binding(name)
        if value is not None:
            found.append(_written_out(value, depth + 1))
    return " ".join(found)


def early_schedules(root: nodes.NodeNG, events: Sequence[Event]) -> Iterator[Early]:
    """The schedulers of a function that step before any step of their optimizer, in each pass of a loop around both."""
    for event in events:
        if event.kind not in (Kind.SCHEDULE, Kind.MAY_SCHEDULE):
            continue
        driven = [one for one in events if _drives(event, one, events) is not False]
        if any(one.kind.steps and event.follows(one) for one in driven):
            continue
        after = [one for one in driven if _is_step(one) and one.follows(event)]
        # Certain steps before possible ones.
        for step in sorted(after, key=lambda one: (one.kind is Kind.MAYBE, one.at)):
            repeated = _repeats_both(root, event, step, events)
            if repeated is not None and not _may_have_stepped(event, step, events):
                yield Early(event, step, repeated)
                break


def _may_have_stepped(schedule: Event, step: Event, events: Sequence[Event]) -> bool:
    """Whether unknown code may step the optimizer before the scheduler, in the same iteration of the loop around
    both.
    """
    loops = schedule.loops[: schedule.common_loops(step)]
    unknown = (one for one in events if one.kind is Kind.MAYBE and one.loops[: len(loops)] == loops)
    return any(schedule.follows(one) for one in unknown)


def _is_step(event: Event) -> bool:
    """Whether an event steps an optimizer, or is a call that may do so according to the project."""
    return event.kind.steps or (event.kind is Kind.MAYBE and last_name(event.node.func) != "step")


def _repeats_both(root: nodes.NodeNG, schedule: Event, step: Event, events: Sequence[Event]) -> bool | None:
    """False if one loop runs both, True if only repeated calls of the function do; None otherwise."""
    shared = schedule.common_loops(step)
    if not all(_is_over_parts(loop) for loop in schedule.loops[shared:]):
        return None
    names = _bound_in(schedule.loops[shared - 1]) if shared else frozenset()
    if any(counts(one, names) for one in schedule.conditions - step.conditions):
        return None
    if shared:
        return None if _is_made_in(schedule, schedule.loops[shared - 1]) else False
    if not isinstance(root, nodes.FunctionDef) or _is_made_in(schedule, root):
        return None
    if all(_is_over_parts(loop) for loop in step.loops):
        computes = any(one.kind in (Kind.BACKWARD, Kind.RESET) and not one.loops for one in events)
        return False if computes and step.kind.steps else None
    return True


def _is_over_parts(loop: nodes.NodeNG) -> bool:
    """A loop over several schedulers or optimizers repeats nothing."""
    iterable = getattr(loop, "iter", None)
    return iterable is not None and _COLLECTION.search(iterable.as_string()) is not None


def _is_made_in(schedule: Event, where: nodes.NodeNG) -> bool:
    """Whether a scheduler is new in each iteration: created in the loop, or in the function, that repeats its step."""
    owner = getattr(schedule.node.func, "expr", None)
    values = [one for one in values_of(owner) if isinstance(one, nodes.Call)] if owner is not None else []
    # Lightning returns the same scheduler repeatedly.
    values = [one for one in values if last_name(one.func) != "lr_schedulers"]
    return any(parent is where for one in values for parent in one.node_ancestors())


def _bound_in(loop: nodes.NodeNG) -> frozenset[str]:
    return frozenset(one.name for one in nodes_of(loop, nodes.AssignName))


def _construction(event: Event) -> nodes.Call | None:
    """The call that created a scheduler, if the file has only one."""
    owner = getattr(event.node.func, "expr", None)
    calls = [one for one in values_of(owner) if isinstance(one, nodes.Call)] if owner is not None else []
    return calls[0] if len(calls) == 1 else None


def _drives(schedule: Event, step: Event, events: Sequence[Event]) -> bool | None:
    """Whether a scheduler sets the learning rate of the optimizer that steps; None if unknown."""
    if not step.kind.steps or schedule.kind is Kind.MAY_SCHEDULE:
        return None
    stepped = {_last_word(one.subject) for one in events if one.kind.steps}
    if len(stepped) == 1:
        return True
    mine = _optimizers_of(schedule)
    if mine:
        return _last_word(step.subject) in mine or None if len(mine) > 1 else _last_word(step.subject) in mine
    own, other = _particular(schedule.subject), _particular(step.subject)
    return own == other if own and other else None


def _optimizers_of(schedule: Event) -> set[str]:
    owner = getattr(schedule.node.func, "expr", None)
    calls = [one for one in values_of(owner) if isinstance(one, nodes.Call)] if owner is not None else []
    given = (Arguments(call, ("optimizer",))["optimizer"].node for call in calls)
    return {last_name(node) for node in given if isinstance(node, (nodes.Name, nodes.Attribute))}


def _last_word(text: str) -> str:
    found = re.findall(r"[A-Za-z_]\w*", text.partition("[")[0])
    return found[-1] if found else text


def _particular(text: str) -> frozenset[str]:
    """The distinguishing part of an optimizer's name: ``g`` of ``optimizer_G`` and ``scheduler_g``."""
    words = (word.lower() for word in _WORDS.findall(text))
    return frozenset(words) - _GENERIC
