"""Family 73: when the learning rate changes."""

from __future__ import annotations

from ldlm_lint.model import Applicability, Confidence, Consequence, Frequency, Probe, Reference, Rule

_ADJUSTING = Reference("torch.optim: how to adjust the learning rate", "https://docs.pytorch.org/docs/stable/optim.html")

SCHEDULER_BEFORE_OPTIMIZER = Rule(
    code="E7309",
    symbol="scheduler-before-optimizer",
    frequency=Frequency.EPOCH,
    consequence=Consequence.WRONG_RESULT,
    message="%(scheduler)s runs before %(optimizer)s in each pass: the first learning rate of the schedule is never used",
    summary="A scheduler of the learning rate that steps before its optimizer.",
    rationale="Since torch 1.1 a scheduler sets its first learning rate when it is made, and each `step()` moves on to the next one. "
    "Called before the first `optimizer.step()`, it throws the first value away and runs one step ahead from then on; "
    "torch warns once and goes on.",
    cost="The first learning rate is skipped: with 1.0 halved at each step the optimizer used 0.5, 0.25, 0.125 (measured on CPU). In a "
    "schedule by epochs that is a whole epoch, and the warm-up or the first plateau is shorter by one.",
    exceptions="A scheduler that gets the step or the epoch as an argument, `ReduceLROnPlateau`, timm's schedulers, and a scheduler that is "
    "moved forward after a resume, before the loop. These are not reported.",
    versions="torch 2.0 to 2.13 (all versions since 1.1).",
    verification="Run with `python -W error::UserWarning`: torch says \"Detected call of `lr_scheduler.step()` before `optimizer.step()`\". "
    "Or print `optimizer.param_groups[0]['lr']` right before each `optimizer.step()`.",
    references=(
        _ADJUSTING,
        Reference("torch.optim.lr_scheduler", "https://github.com/pytorch/pytorch/blob/main/torch/optim/lr_scheduler.py"),
    ),
    reads=("py",),
    triggers=(b"step()", b"learning_rate", b"update_lr"),
    requires=(
        (b"torch", b"lightning", b"accelerate", b"learning_rate", b"update_lr"),
        (b"sched", b"Sched", b"LR", b"learning_rate", b"update_lr"),
    ),
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: the learning rate of every step changes, to what the schedule says.",
    probe=Probe("learning-rates", "the scheduler was called before its optimizer had stepped"),
)

SCHEDULER_PER_MICRO_BATCH = Rule(
    code="W7310",
    symbol="scheduler-per-micro-batch",
    frequency=Frequency.STEP,
    consequence=Consequence.WRONG_RESULT,
    message="%(scheduler)s.step() runs for every micro-batch, the optimizer only after %(count)s of them: "
    "the learning rate runs ahead of the training",
    summary="A scheduler that steps for every micro-batch while gradients are accumulated.",
    rationale="With gradient accumulation the optimizer steps once for several micro-batches. A scheduler that is stepped outside of that "
    "guard moves on several times between two optimizer steps: warm-up ends too early, and the schedule is over long before "
    "the training is.",
    cost="With 4 micro-batches and a rate that decays by half every 10 steps the rate was 1/16 after 10 optimizer steps where it should have "
    "been 1/2 (measured on CPU).",
    exceptions="A schedule whose length is counted in micro-batches, from `len(loader)` that is not divided by the accumulation steps; a "
    "scheduler that gets its position as an argument; one that accelerate, Lightning or DeepSpeed steps at the right time by "
    "itself. These are not reported.",
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
    fix_safety="Unsafe: the learning rate of every step changes, and what computes the schedule's length may have to count optimizer steps.",
    probe=Probe("learning-rates", "the scheduler stepped after backward passes that no optimizer step followed"),
)

RULES = (SCHEDULER_BEFORE_OPTIMIZER, SCHEDULER_PER_MICRO_BATCH)
