"""Family 73: scaled losses."""

from __future__ import annotations

from ldlm_lint.model import Applicability, Confidence, Consequence, Frequency, Reference, Rule

_AMP = Reference("Automatic mixed precision examples", "https://docs.pytorch.org/docs/stable/notes/amp_examples.html")

ACCUMULATION_LOSS_NOT_SCALED = Rule(
    code="W7308",
    symbol="accumulation-loss-not-scaled",
    frequency=Frequency.STEP,
    consequence=Consequence.WRONG_RESULT,
    message="the gradients of %(count)s micro-batches are summed, but nothing divides the loss: they are %(count)s times "
    "as large as those of one batch; divide the loss by %(count)s before the backward pass",
    summary="Gradient accumulation whose loss is not divided by the number of micro-batches.",
    rationale="`backward()` adds to the gradients. After n micro-batches they are the sum of n means, which is n "
    "times the gradient of the whole batch, so changing the number of micro-batches changes the size of the steps.",
    cost="Gradients larger by the number of micro-batches: 4 of them gave 4 times the gradient of the same batch at "
    "once (measured on CPU). Plain SGD takes steps larger by that factor. Adam and AdamW divide by the size of the "
    "gradients and hardly change; clipping, coupled weight decay and eps do.",
    exceptions="A loss that is summed over tokens and divided by their number elsewhere; accelerate, Lightning's "
    "automatic optimization and DeepSpeed, which divide the loss themselves (dividing again is a bug there); a limit "
    "and a learning rate that were tuned to the sum.",
    versions="All versions of torch.",
    verification="Compare the norm of the gradients before the step for one batch at once and for the same batch in micro-batches.",
    references=(
        _AMP,
        Reference("transformers: fixing gradient accumulation", "https://huggingface.co/blog/gradient_accumulation"),
    ),
    reads=("py",),
    triggers=(b"backward(",),
    requires=((b".step(",), (b"%", b"range(", b"chunk(", b"= 0")),
    silencers=(b"'sum'", b'"sum"'),
    confidence=Confidence.MEDIUM,
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: gradients become smaller by that factor, which changes plain SGD, clipping and weight decay. "
    "A learning rate tuned to the sum is then too small.",
)

RULES = (ACCUMULATION_LOSS_NOT_SCALED,)
