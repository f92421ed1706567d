"""Family 73: scaled losses and gradients."""

from __future__ import annotations

from ldlm_lint.model import Applicability, Confidence, Consequence, Frequency, Probe, Reference, Rule

_AMP = Reference("Automatic mixed precision examples", "https://docs.pytorch.org/docs/stable/notes/amp_examples.html")

CLIP_BEFORE_UNSCALE = Rule(
    code="E7305",
    symbol="clip-before-unscale",
    frequency=Frequency.STEP,
    consequence=Consequence.WRONG_RESULT,
    message="%(function)s clips gradients that still carry the loss scale: call %(scaler)s.unscale_(%(optimizer)s) before it",
    summary="Gradient clipping between `scaler.scale(loss).backward()` and `scaler.step(optimizer)` without `scaler.unscale_`.",
    rationale="A `GradScaler` multiplies the loss by a scale, 65536 at first, and so do all gradients until `scaler.step` divides "
    "them. A limit that is compared with scaled gradients cuts almost every step, by almost everything, and differently "
    "whenever the scale changes.",
    cost="With a limit of 1.0 and a scale of 65536 the gradients that reached the optimizer had a norm of 1.5e-5 (measured on CPU). "
    "SGD then hardly moves; Adam divides by the size of the gradients, so that only its eps and the limit's meaning are lost.",
    exceptions="A scaler with `enabled=False`, bfloat16, clipping by accelerate, Lightning or a wrapper of the project that unscales by itself, a "
    "branch that trains without the scaler. These are not reported.",
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
    fix_safety="Unsafe: gradients that were cut to almost nothing get their real size, so that a learning rate tuned to that may be too large; "
    "calling `unscale_` twice for one optimizer before its step raises a RuntimeError.",
    probe=Probe("clipped-norms", "gradients were still scaled when they were clipped"),
)

ACCUMULATION_LOSS_NOT_SCALED = Rule(
    code="W7308",
    symbol="accumulation-loss-not-scaled",
    frequency=Frequency.STEP,
    consequence=Consequence.WRONG_RESULT,
    message="gradients of %(count)s micro-batches are added up, and nothing divides the loss by their number",
    summary="Gradient accumulation whose loss is not divided by the number of micro-batches.",
    rationale="`backward()` adds to the gradients. After n micro-batches they are the sum of n means, n times the gradient of the whole "
    "batch, so that changing the number of micro-batches changes the size of the steps.",
    cost="Gradients larger by the number of micro-batches: 4 of them gave 4 times the gradient of the same batch at once (measured on CPU). "
    "Plain SGD takes steps larger by that factor. Adam and AdamW divide by the size of the gradients and hardly notice; clipping, "
    "coupled weight decay and eps do.",
    exceptions="A loss that is summed over tokens and divided by their number elsewhere; accelerate, Lightning's automatic optimization and DeepSpeed, "
    "which divide by themselves (dividing again is the bug there); a limit and a learning rate that were tuned to the sum.",
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
    fix_safety="Unsafe: gradients become smaller by that factor, which plain SGD, clipping and weight decay follow; a learning rate tuned to the "
    "sum is then too small.",
)

RULES = (CLIP_BEFORE_UNSCALE, ACCUMULATION_LOSS_NOT_SCALED)
