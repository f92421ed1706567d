"""The waits of one training step together: in execution order, with how often each runs and what it adds to the
previous wait.

That depends on all findings of a step, so it is computed after the project has decided each of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from ldlm_lint.budget import OverBudgetError
from ldlm_lint.failures import internal_error
from ldlm_lint.model import Finding, InStep, Span
from ldlm_lint.projects import Projects
from ldlm_lint.wording import RUNS_IN_EVERY_STEP

if TYPE_CHECKING:
    from ldlm_lint.concepts.wait_order import Placed, WaitOrder
    from ldlm_lint.project.questions import Context

# So many earlier waits are checked for one that leaves this one nothing to wait for.
_MOST_BEFORE = 50
_WAITS = "host-sync-in-training-loop"
_Placed = tuple[Finding, "Placed | None"]


def arranged(findings: Sequence[Finding], projects: Projects) -> list[Finding]:
    """The findings, those that are waits of a training step with their place in it."""
    contexts: dict[int, tuple[Context, dict[int, tuple[Finding, Span]]]] = {}
    for number, finding in enumerate(findings):
        told = _told_step(finding)
        if told is not None:
            context = projects.of(finding.span.path)
            contexts.setdefault(id(context), (context, {}))[1][number] = finding, told
    found = list(findings)
    failures: list[Finding] = []
    for context, waits in contexts.values():
        try:
            placed = list(_placed(context, waits, projects))
        except Exception as error:
            first = next(iter(waits.values()))[0]
            failures.append(internal_error(first.span, error, first.rule))
            continue
        for number, finding in placed:
            found[number] = finding
    return [*found, *failures]


def _told_step(finding: Finding) -> Span | None:
    """The line that begins the step, from the finding's own note."""
    if finding.rule != _WAITS:
        return None
    return next((one.span for one in finding.related if one.message == RUNS_IN_EVERY_STEP), None)


def _placed(context: Context, waits: Mapping[int, tuple[Finding, Span]], projects: Projects) -> Iterator[tuple[int, Finding]]:
    """The waits of a project with their places; where the program is unknown, in file order."""
    path = next(iter(waits.values()))[0].span.path
    try:
        with projects.clock(path).running(len(context.project.files)):
            yield from [one for step in _steps(context, waits) for one in _ordered(context, *step)]
    except OverBudgetError:
        for order, (number, (finding, step)) in enumerate(sorted(waits.items(), key=lambda one: one[1][0].order), 1):
            yield number, finding._replace(in_step=InStep(step, order))


def _steps(context: Context, waits: Mapping[int, tuple[Finding, Span]]) -> Iterator[tuple[Span, dict[int, _Placed]]]:
    """The waits by their steps; uses the program's step if it is known, so that each step has one name."""
    order = context.wait_order
    steps: dict[Span, dict[int, _Placed]] = defaultdict(dict)
    for number, (finding, told) in waits.items():
        expr = context.view.expression_at(finding.span)
        wait = order.placed(expr) if expr is not None else None
        known = order.step(wait) if wait is not None else None
        step = known.line_span if known is not None else told
        steps[step][number] = finding, wait if known is not None else None
    yield from steps.items()


def _ordered(context: Context, step: Span, waits: Mapping[int, _Placed]) -> Iterator[tuple[int, Finding]]:
    order = context.wait_order
    before: list[_Placed] = []
    for place, number in enumerate(sorted(waits, key=lambda number: _key(order, *waits[number])), 1):
        finding, wait = waits[number]
        per, loop = order.frequency(wait) if wait is not None else ("step", None)
        earlier = _already_waited(order, wait, islice(reversed(before), _MOST_BEFORE))
        before.append((finding, wait))
        repeated = loop.spot.line_span if loop is not None else None
        in_step = InStep(step, place, per, repeated, earlier.span if earlier is not None else None)
        yield number, (finding if earlier is None else _lowered(context, finding, earlier))._replace(in_step=in_step)


def _lowered(context: Context, finding: Finding, earlier: Finding) -> Finding:
    """The finding for a wait that adds nothing to an earlier one, at a lower level."""
    line = context.project.data(earlier.span.path)[: earlier.span.start].count(b"\n") + 1
    waits = f", but only for work that line {line} already waits for (it matters once line {line} no longer waits)"
    args = dict(finding.args) | {"wait": waits}
    return finding._replace(args=tuple(sorted(args.items()))).lowered("an earlier wait leaves it nothing to wait for")


def _key(order: WaitOrder, finding: Finding, wait: Placed | None) -> tuple[object, ...]:
    """The sort key: execution order; unknown places come last."""
    return (wait is None, [one.expr.key for one in order.way(wait)] if wait is not None else [], finding.order)


def _already_waited(order: WaitOrder, wait: Placed | None, before: Iterable[_Placed]) -> Finding | None:
    """The last wait before another one that leaves it nothing to wait for."""
    if wait is None:
        return None
    return next((finding for finding, earlier in before if earlier is not None and order.follows(earlier, wait)), None)


__all__ = ["arranged"]
