"""Gradients that are added up over micro-batches, found from the events of a step, including helpers.

There are two shapes: the optimizer steps under a guard that the backward pass is not under, or a loop over ``range(n)``
has only the backward pass and the step follows it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from astroid import nodes

from ldlm_lint.checkers.gradient_sync_boundaries import Boundary, micro_boundary, repeats
from ldlm_lint.checkers.step_conditions import exclude
from ldlm_lint.checkers.step_events import Event, Kind
from ldlm_lint.checkers.step_names import last_name


@dataclass(frozen=True)
class MicroBatches:
    """A backward pass per micro-batch and the ``step`` after ``count`` of them.

    ``guard`` lets the step run only at the last one, None if a loop over all of them ends before it.
    """

    backward: Event
    step: Event
    count: nodes.NodeNG
    guard: nodes.If | None

    def repeats(self, event: Event) -> bool:
        """Whether an event runs for every micro-batch: in the same loop, and under no test that distinguishes them."""
        loops = self.backward.loops
        if event.loops[: len(loops)] != loops or exclude(event.conditions, self.backward.conditions):
            return False
        own = [pair for pair in event.guards if pair not in self.backward.guards]
        return not any(_boundary(guard) for guard, _ in own)


def micro_batches(events: Sequence[Event]) -> Iterator[MicroBatches]:
    """The accumulations among the events of a function, one for each backward pass."""
    if any(one.kind is Kind.ENGINE for one in events):
        return
    for event in events:
        if event.kind is Kind.BACKWARD:
            found = _of(event, events)
            if found is not None:
                yield found


def _of(backward: Event, events: Sequence[Event]) -> MicroBatches | None:
    here = [
        one
        for one in events
        if one.loops[: len(backward.loops)] == backward.loops and not exclude(one.conditions, backward.conditions)
    ]
    steps = [one for one in here if one.kind.steps]
    if not steps:
        return _before_a_step(backward, events, here)
    guards = [_guard(one, backward) for one in steps]
    if None in guards or any(one.kind is Kind.RESET and _guard(one, backward) is None for one in here):
        return None
    guard, count = next(one for one in guards if one is not None)
    return MicroBatches(backward, steps[0], count, guard)


def _guard(event: Event, backward: Event) -> tuple[nodes.If, nodes.NodeNG] | None:
    """The test that lets an event run at the last micro-batch only."""
    for guard, holds in event.guards:
        if (guard, holds) in backward.guards:
            continue
        boundary = _boundary(guard)
        if boundary is not None and boundary.last is holds and repeats(boundary.count):
            return guard, boundary.count
    return None


def _boundary(guard: nodes.If) -> Boundary | None:
    """The meaning of a guard for micro-batches; if it ends the iteration early, the code after it resets a counter."""
    block = guard.body
    if isinstance(block[-1], nodes.Continue):
        suite: list[nodes.NodeNG] = next((one for one in (getattr(guard.parent, name, None) for name in ("body", "orelse")) if one and guard in one), [])
        block = suite[suite.index(guard) + 1 :] if suite else []
    return micro_boundary(guard.test, block)


def _before_a_step(backward: Event, events: Sequence[Event], here: Sequence[Event]) -> MicroBatches | None:
    loop = backward.loops[-1] if backward.loops else None
    count = _passes(loop) if isinstance(loop, nodes.For) else None
    if count is None or any(one.kind is Kind.RESET for one in here):
        return None
    if not repeats(count):
        return None
    outer = backward.loops[:-1]
    step = next((one for one in events if one.kind.steps and one.follows(backward) and one.loops[: len(outer)] == outer), None)
    return MicroBatches(backward, step, count, None) if step is not None else None


def _passes(loop: nodes.For) -> nodes.NodeNG | None:
    """How often a loop over ``range(n)``, ``enumerate(x.chunk(n))`` or ``x.chunk(n)`` runs."""
    iterable = loop.iter
    while isinstance(iterable, nodes.Call) and last_name(iterable.func) in ("enumerate", "zip", "tqdm") and iterable.args:
        iterable = iterable.args[0]
    if not isinstance(iterable, nodes.Call) or not iterable.args:
        return None
    name = last_name(iterable.func)
    if name in ("range", "trange") and len(iterable.args) == 1:
        return iterable.args[0]
    if name == "chunk":
        method = isinstance(iterable.func, nodes.Attribute) and last_name(iterable.func.expr) != "torch"
        return iterable.args[0 if method else 1] if len(iterable.args) > (not method) else None
    return None
