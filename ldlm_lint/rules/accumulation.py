"""Families 72 and 73: what accumulating gradients over several micro-batches costs, and where it goes wrong."""

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
    rationale="DDP averages gradients over the ranks in each backward pass. While micro-batches are accumulated only the last of these "
    "averages is needed: the sum of the local gradients can be reduced once. `no_sync()` switches the reduction off for the "
    "passes whose forward ran inside it.",
    cost="One all-reduce of all gradients per micro-batch instead of one per step. Hugging Face measured 2.00 against 0.91 seconds per batch on "
    "two nodes and 0.50 against 0.41 on one node with two T4 and four micro-batches; the slower the network, the more.",
    exceptions="The number of micro-batches is always 1. `static_graph=True`: together with `no_sync()` in the first iteration it crashes up "
    "to torch 2.13, and such projects are not reported.",
    versions="torch 2.0 to 2.13.",
    verification="Count the `ncclAllReduce` kernels of one optimizer step in a profile, or time a step with and without.",
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
    fix_safety="Unsafe: gradients are summed before they are averaged instead of after, which rounds differently, and code between backward "
    "and step sees gradients of its own rank only. The test is that of the optimizer's step, so that no step is taken on gradients that "
    "stayed local; where a step may come at another time (what is left over after the last batch, a second test, two optimizers in turn), "
    "where a backward pass may be left out, or every micro-batch is clipped, there is no fix.",
    probe=Probe(
        "all-reduces-per-step",
        "gradients were reduced in each of several backward passes between two optimizer steps",
    ),
)

RULES = (ACCUMULATION_WITHOUT_NO_SYNC,)
