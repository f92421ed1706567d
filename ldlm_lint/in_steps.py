"""The waits of one training step together: in the order in which they run, with how often each runs and what it adds to the wait before.

That rests on all findings of a step, so it is told after the project has decided on each of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from ldlm_lint.budget import OverBudgetError
from ldlm_lint.model import Finding, InStep, Severity, Span
from ldlm_lint.projects import Projects
from ldlm_lint.rules.host_time import HOST_SYNC_IN_TRAINING_LOOP, RUNS_IN_EVERY_STEP, after_a_wait

if TYPE_CHECKING:
    from ldlm_lint.concepts.wait_order import Row, WaitOrder
    from ldlm_lint.project.questions import Context

_Placed = tuple[Finding, "Row | None"]


def arranged(findings: Sequence[Finding], projects: Projects) -> list[Finding]:
    """The findings, those that are waits of a training step with their place in it."""
    steps: dict[tuple[int, Span], list[int]] = defaultdict(list)
    contexts: dict[int, Context] = {}
    for number, finding in enumerate(findings):
        step = _step_of(finding)
        if step is not None:
            context = projects.of(finding.span.path)
            contexts[id(context)] = context
            steps[id(context), step].append(number)
    found = list(findings)
    for (context_id, step), numbers in steps.items():
        for number, finding in _in_order(contexts[context_id], step, {one: findings[one] for one in numbers}, projects):
            found[number] = finding
    return found


def _step_of(finding: Finding) -> Span | None:
    if finding.rule != HOST_SYNC_IN_TRAINING_LOOP.symbol:
        return None
    return next((one.span for one in finding.related if one.message == RUNS_IN_EVERY_STEP), None)


def _in_order(context: Context, step: Span, findings: Mapping[int, Finding], projects: Projects) -> Iterator[tuple[int, Finding]]:
    """The findings of a step with their places; where the program gives out, in the order of their files."""
    try:
        with projects.clock(step.path).running(len(findings)):
            yield from _ordered(context, step, findings)
    except OverBudgetError:
        for order, (number, finding) in enumerate(sorted(findings.items(), key=lambda one: one[1].order), 1):
            yield number, finding._replace(in_step=InStep(step, order))


def _ordered(context: Context, step: Span, findings: Mapping[int, Finding]) -> Iterator[tuple[int, Finding]]:
    order = context.wait_order
    rows = {number: order.row_at(finding.span.path, finding.span.start) for number, finding in findings.items()}
    sequence = sorted(findings, key=lambda number: _key(order, rows[number], findings[number]))
    before: list[int] = []
    for place, number in enumerate(sequence, 1):
        finding, row = findings[number], rows[number]
        per, loop = order.frequency(row) if row is not None else ("step", 0)
        earlier = _already_waited(order, row, ((findings[one], rows[one]) for one in reversed(before)))
        repeated = _line_span(context, row, loop) if row is not None and loop else None
        finding = finding._replace(in_step=InStep(step, place, per, repeated, earlier.span if earlier is not None else None))
        if earlier is not None:
            line = context.project.data(earlier.span.path)[: earlier.span.start].count(b"\n") + 1
            args = dict(finding.args) | {"wait": after_a_wait(line)}
            finding = finding._replace(level=Severity.INFO, args=tuple(sorted(args.items())))
        yield number, finding
        before.append(number)


def _key(order: WaitOrder, row: Row | None, finding: Finding) -> tuple[object, ...]:
    """What runs first comes first; a place that the program does not know comes last."""
    return (row is None, order.path(row) if row is not None else (), finding.order)


def _already_waited(order: WaitOrder, row: Row | None, before: Iterable[_Placed]) -> Finding | None:
    """The last wait before a row that leaves it nothing to wait for."""
    if row is None:
        return None
    return next((finding for finding, earlier in before if earlier is not None and order.follows(earlier, row)), None)


def _line_span(context: Context, row: Row, place: int) -> Span:
    from ldlm_lint.code.table import line_of

    return context.line_span(context.view.path(row.module), line_of(place))


__all__ = ["arranged"]
