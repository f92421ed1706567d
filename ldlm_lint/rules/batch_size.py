"""Family 73, the effective batch size: per-GPU batch x GPUs x accumulation steps, and causes of its drift."""

from __future__ import annotations

from ldlm_lint.model import Applicability, Confidence, Consequence, Reference, Rule

BATCH_SIZE_DRIFT = Rule(
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

RULES = (BATCH_SIZE_DRIFT,)
