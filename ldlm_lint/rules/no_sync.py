"""Family 72: the scope of `no_sync`."""

from __future__ import annotations

from ldlm_lint.model import Applicability, Consequence, Frequency, Reference, Rule

NO_SYNC_OUTSIDE_FORWARD = Rule(
    code="E7237",
    symbol="no-sync-outside-forward",
    frequency=Frequency.STEP,
    consequence=Consequence.SLOW,
    message="`no_sync()` around the backward pass alone has no effect, because DDP decides in the forward pass whether to "
    "synchronize: every micro-batch is still all-reduced; run the forward pass inside `no_sync()` too",
    summary="`no_sync()` that covers the backward pass but not the forward pass.",
    rationale="DDP prepares the reduction of gradients at the end of a forward pass that runs outside `no_sync()`, "
    "and the backward pass of that forward pass all-reduces them, wherever it runs. Gradients stay local only if the "
    "forward pass ran inside `no_sync()`.",
    cost="The all-reduces that the call was written to save. Hugging Face measured 2.13 seconds per batch with `no_sync()` around the "
    "backward pass alone, 2.00 without any, and 0.91 with the forward pass inside (two nodes, four micro-batches).",
    exceptions="FSDP, which decides in the backward pass, and custom engines. A function that runs the model and is "
    "called inside `no_sync()`.",
    versions="torch 2.0 to 2.13.",
    verification="Compare `.grad` on two ranks right after the backward pass, with different data: equal gradients "
    "were synchronized.",
    references=(
        Reference(
            "DistributedDataParallel.no_sync",
            "https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html",
        ),
        Reference(
            "accelerate: gradient synchronization", "https://huggingface.co/docs/accelerate/concept_guides/gradient_synchronization"
        ),
    ),
    reads=("py",),
    triggers=(b"no_sync",),
    requires=((b"backward",),),
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: gradients that were averaged over the ranks for each micro-batch then stay local until a "
    "synchronized one, which must come before the optimizer steps. Only shown if `no_sync()` is not under the "
    "condition of the optimizer step.",
)

RULES = (NO_SYNC_OUTSIDE_FORWARD,)
