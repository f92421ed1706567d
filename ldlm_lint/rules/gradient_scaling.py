"""Family 73: scaled losses and gradients."""

from __future__ import annotations

from ldlm_lint.model import Applicability, Confidence, Consequence, Frequency, Probe, Reference, Rule

_AMP = Reference("Automatic mixed precision examples", "https://docs.pytorch.org/docs/stable/notes/amp_examples.html")

CLIP_BEFORE_UNSCALE = Rule(
    code="E7305",
    symbol="clip-before-unscale",
    frequency=Frequency.STEP,
    consequence=Consequence.WRONG_RESULT,
    message="`%(function)s` clips gradients that are still multiplied by the loss scale, so the limit cuts them far too "
    "much: call %(call)s before it",
    summary="Gradient clipping between `scaler.scale(loss).backward()` and `scaler.step(optimizer)` without `scaler.unscale_`.",
    rationale="A `GradScaler` multiplies the loss by a scale, 65536 at first. All gradients are multiplied with it "
    "until `scaler.step` divides them. A limit that is compared with scaled gradients cuts almost every step to "
    "almost nothing, and by another factor whenever the scale changes.",
    cost="With a limit of 1.0 and a scale of 65536 the gradients that reached the optimizer had a norm of 1.5e-5 "
    "(measured on CPU). SGD then hardly moves. Adam divides by the size of the gradients, so only its eps and the "
    "limit lose their meaning.",
    exceptions="Not reported: a scaler with `enabled=False`, bfloat16, clipping by accelerate, Lightning or a wrapper "
    "of the project that unscales itself, and a branch that trains without the scaler.",
    versions="torch 2.0 to 2.13.",
    verification="Print the norm that `clip_grad_norm_` returns: it is thousands of times that of training in float32, and changes with "
    "`scaler.get_scale()`. The scale can be followed on a CPU with `torch.amp.GradScaler('cpu')`.",
    references=(
        _AMP,
        Reference("torch.amp.GradScaler", "https://docs.pytorch.org/docs/stable/amp.html"),
    ),
    reads=("py",),
    triggers=(b"clip_grad", b"clip_grads_with_norm_", b"adaptive_clip_grad"),
    requires=((b"caler",), (b".step(",)),
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: gradients that were cut to almost nothing get their real size, so a learning rate tuned to "
    "them can be too large. Calling `unscale_` twice for one optimizer before its step raises a RuntimeError.",
    probe=Probe("clipped-norms", "gradients were still scaled when they were clipped"),
)

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

RULES = (CLIP_BEFORE_UNSCALE, ACCUMULATION_LOSS_NOT_SCALED)
