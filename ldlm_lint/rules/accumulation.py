"""Families 72 and 73: costs and mistakes of gradient accumulation over several micro-batches."""

from __future__ import annotations

from ldlm_lint.model import Applicability, Confidence, Consequence, Frequency, Probe, Reference, Rule

NO_SYNC = "run forward and backward of the others under `no_sync()`"
ACCUMULATE = "pass `gradient_accumulation_steps` to `Accelerator`, and run forward and backward under `accelerator.accumulate(model)`"

ACCUMULATION_WITHOUT_NO_SYNC = Rule(
    code="W7236",
    symbol="accumulation-without-no-sync",
    frequency=Frequency.STEP,
    consequence=Consequence.SLOW,
    message="DDP all-reduces the gradients of every micro-batch here, but the optimizer steps only after %(steps)s of "
    "them, so all but the last all-reduce are wasted: %(advice)s",
    summary="Gradient accumulation with a DDP model that all-reduces its gradients in every backward pass.",
    rationale="DDP averages gradients over the ranks in each backward pass. While gradients accumulate over "
    "micro-batches, only the last average is needed: the local gradients can be summed first and reduced once. "
    "`no_sync()` skips the all-reduce for every backward pass whose forward pass ran inside it.",
    cost="One all-reduce of all gradients per micro-batch instead of one per optimizer step. Hugging Face measured "
    "2.00 instead of 0.91 seconds per batch on two nodes, and 0.50 instead of 0.41 on one node with two T4 GPUs and "
    "four micro-batches; the slower the network, the higher the cost.",
    exceptions="Trainings that always use 1 micro-batch. Projects with `static_graph=True` are not reported: up to "
    "torch 2.13, `no_sync()` in the first iteration crashes there.",
    versions="torch 2.0 to 2.13.",
    verification="Count the `ncclAllReduce` kernels of one optimizer step in a profile, or time a step with and "
    "without `no_sync()`.",
    references=(
        Reference(
            "DistributedDataParallel.no_sync",
            "https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html",
        ),
        Reference(
            "accelerate: gradient synchronization", "https://huggingface.co/docs/accelerate/concept_guides/gradient_synchronization"
        ),
        Reference("pytorch#143580", "https://github.com/pytorch/pytorch/issues/143580"),
    ),
    reads=("py",),
    triggers=(b".backward(", b"update_grad=", b"need_update="),
    confidence=Confidence.MEDIUM,
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: gradients are summed before they are averaged instead of after, which rounds differently, and "
    "code between the backward pass and the optimizer step sees only its own rank's gradients. The fix uses the "
    "condition of the optimizer step, so that no step uses gradients that stayed local. No fix is offered if a "
    "backward pass can be skipped, if every micro-batch is clipped, or if a step can happen at another time (leftover "
    "micro-batches after the last batch, a second condition, two optimizers in turn).",
    probe=Probe(
        "all-reduces-per-step",
        "gradients were reduced in each of several backward passes between two optimizer steps",
    ),
)

RULES = (ACCUMULATION_WITHOUT_NO_SYNC,)
