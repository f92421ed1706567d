"""batch-size-drift: accumulation steps that are rounded down, wherever the quotient, the ranks and the optimizer's step are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ldlm_lint.concepts.rounded_steps import Quotient, RoundedSteps
from ldlm_lint.model import Applicability, Confidence, Consequence, Edit, Finding, Fix, Reference, Rule
from ldlm_lint.wording import quoted

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode

RULE = Rule(
    code="W7307",
    symbol="batch-size-drift",
    consequence=Consequence.WRONG_RESULT,
    message="%(name)s is an integer division: where %(divisor)s does not divide %(target)s, the remainder is lost and "
    "training runs with another batch size than configured; stop with an error when a remainder is left",
    summary="Accumulation steps from an integer division by the number of GPUs, without a check for a remainder.",
    rationale="`$((TARGET / (BATCH * WORLD)))` and `target // (batch * world_size)` drop the remainder. With a target "
    "of 128 and 4 samples per GPU, 24 GPUs get 1 step and an effective batch of 96. 64 GPUs get 0 steps, or 256 "
    "samples if the 0 is raised to 1.",
    cost="No run time, but training with another batch size than the configuration states.",
    exceptions="Not reported: a division that is checked with `%`, a product that is compared with the target, a "
    "quotient that is rounded up on purpose, and literal numbers that divide without a remainder.",
    versions="All versions.",
    verification="Multiply the result by batch and world size and compare it with the target, for each number of GPUs "
    "in use.",
    references=(
        Reference(
            "Bash manual: shell arithmetic", "https://www.gnu.org/software/bash/manual/bash.html#Shell-Arithmetic"
        ),
        Reference(
            "Binary arithmetic operations", "https://docs.python.org/3/reference/expressions.html#binary-arithmetic-operations"
        ),
    ),
    reads=("sh", "py"),
    triggers=(b"accum", b"ACCUM", b"Accum"),
    confidence=Confidence.MEDIUM,
    applicability=Applicability.DISPLAY,
    fix_safety="Shown only: whether to stop, to round up or to adjust the learning rate is your decision.",
)

_REASON = "only you can decide whether to stop, to round up or to adjust the learning rate"


def find(code: ProjectCode) -> Iterator[Finding]:
    """The quotients that are accumulation steps of several ranks, and whose remainder no code looks at."""
    for one in code[RoundedSteps].unchecked:
        args = {"name": quoted(one.name), "target": quoted(one.dividend_text), "divisor": quoted(one.divisor_text)}
        yield code.finding(RULE, one.span, args, fix=_fix(code, one), confidence=Confidence.MEDIUM)


def _fix(code: ProjectCode, one: Quotient) -> Fix | None:
    """An ``assert`` in front of an assignment that is on a line of its own."""
    source = code.source(one.spot.function.module)
    start = source.line_starts[one.spot.line - 1]
    indent = source.slice(one.span._replace(start=start, end=one.span.start))
    if indent.strip():
        return None
    check = f'{indent}assert ({one.dividend_text}) % ({one.divisor_text}) == 0, "the batch size does not divide"{source.newline}'
    return Fix("stop with an error when a remainder is left", (Edit(source.span(start, start), check),), Applicability.DISPLAY, _REASON)
