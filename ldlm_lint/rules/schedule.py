"""Family 73: when the learning rate changes."""

from __future__ import annotations

from ldlm_lint.model import Applicability, Confidence, Consequence, Frequency, Probe, Reference, Rule

_ADJUSTING = Reference("torch.optim: how to adjust the learning rate", "https://docs.pytorch.org/docs/stable/optim.html")

SCHEDULER_PER_MICRO_BATCH = Rule(
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
        _ADJUSTING,
        Reference(
            "accelerate: gradient accumulation", "https://huggingface.co/docs/accelerate/usage_guides/gradient_accumulation"
        ),
    ),
    reads=("py",),
    triggers=(b".step()",),
    requires=((b"backward",), (b"sched", b"Sched", b"LR")),
    confidence=Confidence.MEDIUM,
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: the learning rate of every step changes, and the code that computes the schedule's length may "
    "have to count optimizer steps.",
    probe=Probe("learning-rates", "the scheduler stepped after backward passes that no optimizer step followed"),
)

RULES = (SCHEDULER_PER_MICRO_BATCH,)
