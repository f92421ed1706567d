"""Schedules of the learning rate that step for each micro-batch, although their length does not count these.

    loss.backward()
    if (index + 1) % parts == 0: optimizer.step()
    scheduler.step()                    # right only for a schedule over `len(loader)` batches
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ldlm_lint.concepts.accumulation import Accumulation, Accumulations
from ldlm_lint.concepts.losses import BackwardPasses
from ldlm_lint.concepts.schedules import Kind, Schedules, Step
from ldlm_lint.program.codebase import Concept
from ldlm_lint.program.handles import Call, Expr, Guard
from ldlm_lint.program.walks import Through, origins
from ldlm_lint.vocabulary.batch_sizes import counts_batches, counts_updates

_LINKS = Through.NAMES | Through.CHOICES | Through.PARAMETERS | Through.ATTRIBUTES | Through.OUTSIDE | Through.RETURNS | Through.CONTENTS


class FrequentStep(NamedTuple):
    """A step of a schedule for each micro-batch of an accumulation."""

    schedule: Step
    accumulation: Accumulation


class FrequentSchedules(Concept):
    """Those of a program."""

    def every(self) -> Iterator[FrequentStep]:
        """All of them, each once."""
        seen: set[Call] = set()
        for one in self.code[Accumulations].every:
            if one.is_counted and one.steps and not self.code[BackwardPasses].is_of_engine(one.backward):
                for step in self.code[Schedules].steps_in(one.call.function):
                    if step.call not in seen and _runs_for_each(step, one) and not self._counts_batches(step, one):
                        seen.add(step.call)
                        yield FrequentStep(step, one)

    def _counts_batches(self, step: Step, one: Accumulation) -> bool:
        """Whether the length of a schedule is computed from the number of batches, not divided by that of micro-batches."""
        makers = self.code[Schedules].makers(step.call)
        given = [value for maker in makers for value in (*maker.positional[1:], *(value for name, value in maker.keywords if name != "optimizer"))]
        parts = [part for value in given for part in origins(value, _LINKS, _operands)]
        divides = any(counts_updates(part.last_name) or (part.operator in ("Div", "FloorDiv") and _is_same(part.operands[1], one.count)) for part in parts)
        return not divides and any(_is_length(part) or counts_batches(part.last_name) for part in parts)


def _runs_for_each(step: Step, one: Accumulation) -> bool:
    """Whether a schedule steps in each round with a micro-batch, under no condition of its own but that there is one."""
    around = one.call.guards
    own = [guard for guard in step.guards if guard not in around and guard.kind != "with"]
    is_inside = not one.call.loops or one.call.loops[0] in step.loops
    return step.kind is Kind.SCHEDULE and is_inside and not one.call.excludes(step.site) and all(_asks_for(guard, step.call) for guard in own)


def _asks_for(guard: Guard, step: Call) -> bool:
    """``if scheduler is not None``"""
    asked = [fact.values[0] for fact in guard.facts if fact.values[0].kind != "bool"]
    return bool(asked) and all(step.receiver is not None and _is_same(one, step.receiver) for one in asked)


def _operands(at: Expr) -> list[Expr]:
    """What a number, or a function that gives it, is computed from."""
    results = [result for function in at.functions for result in function.returned]
    return [*results, *(at.positional if isinstance(at, Call) else at.operands if at.kind in ("op", "un") else [])]


def _is_length(at: Expr) -> bool:
    return isinstance(at, Call) and at.receiver is None and at.called_name == "len"


def _is_same(one: Expr, other: Expr) -> bool:
    return one.unnamed == other.unnamed or one.is_alike(other) or (one.identity != () and one.identity == other.identity)
