"""scheduler-before-optimizer: schedules that step in a loop before the optimizer whose learning rate they set, also through
objects and functions of the project."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ldlm_lint.concepts.schedules import EarlyStep, Schedules, Step, subject
from ldlm_lint.edits.statements import ABOUT_SCHEDULES, move_behind
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
    code="E7309",
    symbol="scheduler-before-optimizer",
    frequency=Frequency.EPOCH,
    consequence=Consequence.WRONG_RESULT,
    message="%(scheduler)s runs before %(optimizer)s in every iteration: the first learning rate of the schedule is never "
    "used; step the scheduler after the optimizer",
    summary="A learning-rate scheduler that steps before its optimizer.",
    rationale="Since torch 1.1 a scheduler sets its first learning rate when it is created, and each `step()` moves "
    "on to the next one. If it runs before the first `optimizer.step()`, the first value is lost and the schedule is "
    "one step ahead from then on; torch warns once and continues.",
    cost="The first learning rate is skipped: with 1.0 halved at each step the optimizer used 0.5, 0.25, 0.125 "
    "(measured on CPU). In a schedule by epochs that is a whole epoch, and the warm-up or the first plateau is "
    "shorter by one.",
    exceptions="Not reported: a scheduler that gets the step or the epoch as an argument, `ReduceLROnPlateau`, timm's "
    "schedulers, and a scheduler that is moved forward after a resume, before the loop.",
    versions="torch 2.0 to 2.13 (all versions since 1.1).",
    verification="Run with `python -W error::UserWarning`: torch says \"Detected call of `lr_scheduler.step()` before `optimizer.step()`\". "
    "Or print `optimizer.param_groups[0]['lr']` right before each `optimizer.step()`.",
    references=(
        Reference("torch.optim: how to adjust the learning rate", "https://docs.pytorch.org/docs/stable/optim.html"),
        Reference("torch.optim.lr_scheduler", "https://github.com/pytorch/pytorch/blob/main/torch/optim/lr_scheduler.py"),
    ),
    reads=("py",),
    triggers=(),
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: the learning rate of every step changes to what the schedule says.",
    probe=Probe("learning-rates", "the scheduler was called before its optimizer had stepped"),
)

_REASON = "each step then uses the learning rate one earlier in the schedule than now"


def find(code: ProjectCode) -> Iterator[Finding]:
    """Every schedule that is stepped in a loop before its optimizer."""
    for early in code[Schedules].early:
        schedule, optimizer = early.schedule, early.optimizer
        args = {"scheduler": quoted(_shown(code, schedule)), "optimizer": quoted(_shown(code, optimizer))}
        related = [Related(one.span, "the optimizer steps here") for one in [optimizer.call if optimizer.is_beside else optimizer.site]]
        related += [] if optimizer.is_beside else [Related(optimizer.call.line_span, "the optimizer steps here")]
        related += [] if schedule.is_beside else [Related(schedule.call.line_span, "the scheduler steps here")]
        confidence = Confidence.HIGH if early.is_known and schedule.is_beside else Confidence.MEDIUM
        yield code.finding(RULE, schedule.site.span, args, related, fix=_fix(code, early), confidence=confidence)


def _shown(code: ProjectCode, step: Step) -> str:
    """A step as the file with the loop writes it."""
    return f"{subject(step.call)}.step()" if step.is_beside else f"{code.source(step.site.module).slice(step.site.callee_span)}()"


def _fix(code: ProjectCode, early: EarlyStep) -> Fix | None:
    """Move the schedule's statement behind the optimizer's; none if it also steps too often, which another fix mends."""
    source, schedule = code.source(early.schedule.site.module), early.schedule
    edits = move_behind(source, schedule.site.span, early.optimizer.site.span, ABOUT_SCHEDULES) if not early.is_too_often else ()
    return Fix("step the scheduler after the optimizer", edits, Applicability.UNSAFE, _REASON) if edits else None
