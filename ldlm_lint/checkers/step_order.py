"""Schedulers that step for every micro-batch."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from astroid import nodes

from ldlm_lint.checkers.accumulating import MicroBatches, micro_batches
from ldlm_lint.checkers.step_conditions import counts
from ldlm_lint.checkers.step_events import Event, Kind
from ldlm_lint.checkers.step_names import values_of
from ldlm_lint.patterns import lazily
from ldlm_lint.python.values import only_binding
from ldlm_lint.python.walks import nodes_of

_MICRO_STEPS = lazily(r"\blen\(|steps_per_epoch|num_batches|batches_per|iters_per|loader")
_ACCUMULATES = lazily(r"accum|micro|updates?\b|update_steps|optimizer_steps|grad_acc", re.I)
_DEPTH = 4


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


def _bound_in(loop: nodes.NodeNG) -> frozenset[str]:
    return frozenset(one.name for one in nodes_of(loop, nodes.AssignName))


def _construction(event: Event) -> nodes.Call | None:
    """The call that created a scheduler, if the file has only one."""
    owner = getattr(event.node.func, "expr", None)
    calls = [one for one in values_of(owner) if isinstance(one, nodes.Call)] if owner is not None else []
    return calls[0] if len(calls) == 1 else None
