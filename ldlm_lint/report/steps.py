"""The waits of training steps as blocks: per step in execution order, with the frequency of each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

from ldlm_lint.model import Finding, InStep, Span
from ldlm_lint.report.blocks import Blocks
from ldlm_lint.report.cells import clean
from ldlm_lint.report.lines import Line, line
from ldlm_lint.report.summary import count

MOST_STEPS, MOST_WAITS = 4, 8
_OFTEN = {"layer": "once per layer", "parameter": "once per parameter", "sample": "once per sample", "pass": "once per pass"}


def steps_of(first: Finding, findings: Sequence[Finding]) -> list[list[Finding]]:
    """The findings by their steps, each in order; the step of the ``first`` one comes first."""
    steps: dict[Span, list[Finding]] = defaultdict(list)
    for finding in (first, *findings):
        if finding.in_step is not None:
            steps[finding.in_step.step].append(finding)
    return [sorted(waits, key=_order) for waits in steps.values()]


def step_lines(blocks: Blocks, first: Finding, findings: Sequence[Finding]) -> tuple[list[Line], int]:
    """A block for each step, and how many findings are left out; ``first`` is shown in full already."""
    shown: list[Line] = []
    left = 0
    for number, waits in enumerate(steps_of(first, findings)):
        if number >= MOST_STEPS:
            left += len(waits)
        elif waits != [first]:
            shown += _step(blocks, waits)
            left += max(len(waits) - MOST_WAITS, 0)
    return shown, left


def _step(blocks: Blocks, waits: list[Finding]) -> Iterator[Line]:
    place = waits[0].in_step
    assert place is not None
    number = f"{count(len(waits), 'wait')} in the order in which they run" if len(waits) > 1 else "1 wait"
    yield line(("step: ", "bold"), f"{blocks.place(place.step, column=False)}, {number}")
    for finding in waits[:MOST_WAITS]:
        yield line(f"  {_order(finding):>2}. ", blocks.place(finding.span), (f"  {_said(blocks, finding)}", "dim"))
    if len(waits) > MOST_WAITS:
        yield line(f"  … {len(waits) - MOST_WAITS} more of this step")


def _said(blocks: Blocks, finding: Finding) -> str:
    """What waits, how often, and whether it adds to the previous wait."""
    place = finding.in_step
    assert place is not None
    what = clean(str(dict(finding.args).get("what", "")))
    return ", ".join(filter(None, (what, *circumstances(place, lambda span: blocks.place(span, column=False)))))


def circumstances(place: InStep, where: Callable[[Span], str]) -> Iterator[str]:
    """How often a wait runs in its step, and the earlier wait that leaves it nothing to wait for; ``where`` names a place."""
    often = _OFTEN.get(place.per, "")
    if place.loop is not None:
        often += f" of the loop at {where(place.loop)}" if place.per == "pass" else f" ({where(place.loop)})"
    if often:
        yield often
    if place.after is not None:
        yield f"info: nothing to wait for after {where(place.after)}"


def _order(finding: Finding) -> int:
    return finding.in_step.order if finding.in_step is not None else 0


__all__ = ["circumstances", "step_lines", "steps_of"]
