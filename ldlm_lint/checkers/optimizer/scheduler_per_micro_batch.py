"""scheduler-per-micro-batch: schedules of the learning rate that step for every micro-batch, while the optimizer does not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ldlm_lint.concepts.frequent_schedules import FrequentSchedules
from ldlm_lint.concepts.schedules import Schedules, subject
from ldlm_lint.edits.statements import ABOUT_SCHEDULES, move_into
from ldlm_lint.model import (
    Applicability,
    Confidence,
    Consequence,
    Finding,
    Fix,
    Frequency,
    Probe,
    Reference,
    Related,
    Rule,
)
from ldlm_lint.wording import quoted

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode

RULE = Rule(
    code="W7310",
    symbol="scheduler-per-micro-batch",
    frequency=Frequency.STEP,
    consequence=Consequence.WRONG_RESULT,
    message="`%(scheduler)s.step()` runs for every micro-batch, but the optimizer steps only after %(count)s of them: the "
    "learning rate runs through its schedule too fast; step the scheduler together with the optimizer",
    summary="A scheduler that steps for every micro-batch while gradients are accumulated.",
    rationale="With gradient accumulation the optimizer steps once for several micro-batches. A scheduler that is "
    "stepped outside that condition moves on several times between two optimizer steps: warm-up ends too early, and "
    "the schedule is over long before the training.",
    cost="With 4 micro-batches and a rate that halves every 10 steps, the rate was 1/16 after 10 optimizer steps "
    "instead of 1/2 (measured on CPU).",
    exceptions="Not reported: a schedule whose length is counted in micro-batches, from a `len(loader)` that is not "
    "divided by the accumulation steps; a scheduler that gets its position as an argument; one that accelerate, "
    "Lightning or DeepSpeed steps at the right time.",
    versions="All versions of torch.",
    verification="Log `scheduler.last_epoch` next to the number of optimizer steps: the two must be equal.",
    references=(
        Reference("torch.optim: how to adjust the learning rate", "https://docs.pytorch.org/docs/stable/optim.html"),
        Reference(
            "accelerate: gradient accumulation", "https://huggingface.co/docs/accelerate/usage_guides/gradient_accumulation"
        ),
    ),
    reads=("py",),
    triggers=(),
    confidence=Confidence.MEDIUM,
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: the learning rate of every step changes, and the code that computes the schedule's length may "
    "have to count optimizer steps.",
    probe=Probe("learning-rates", "the scheduler stepped after backward passes that no optimizer step followed"),
)

_REASON = "the schedule then runs slower by the number of micro-batches: divide a length that counts micro-batches by it"


def find(code: ProjectCode) -> Iterator[Finding]:
    """All schedules that step too often."""
    for one in code[FrequentSchedules].every():
        site, step = one.schedule.site, one.accumulation.steps[0]
        args = {"scheduler": subject(one.schedule.call), "count": quoted(one.accumulation.count.called_in(site.function))}
        confidence = Confidence.HIGH if code[Schedules].is_known(one.schedule.call) else Confidence.MEDIUM
        edits = move_into(code.source(site.module), site.span, step.span, ABOUT_SCHEDULES)
        fix = Fix("step the scheduler with the optimizer", edits, Applicability.UNSAFE, _REASON) if edits else None
        related = [Related(step.span, "the optimizer steps here, once for all micro-batches")]
        yield code.finding(RULE, site.span, args, related, fix=fix, confidence=confidence)
