"""Family 72, distributed: options of a DistributedDataParallel wrapper with a cost in every step."""

from __future__ import annotations

from ldlm_lint.model import Applicability, Confidence, Consequence, Probe, Reference, Rule

_DDP = Reference(
    "DistributedDataParallel",
    "https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html",
)

BROADCAST_BUFFERS = Rule(
    code="I7228",
    symbol="ddp-broadcast-buffers",
    consequence=Consequence.WRONG_RESULT,
    message="%(problem)s",
    summary="`broadcast_buffers=False` around a model with random buffers, or any `broadcast_buffers` if torch 2.13 "
    "is the oldest version.",
    rationale="Since torch 2.1 `broadcast_buffers=False` skips not only the broadcast before each forward pass but "
    "also the one at construction. Buffers that each rank draws from its own random stream (codebooks, random "
    "projections, noise) then differ between the ranks for the whole run, and only those of rank 0 are saved. torch "
    "2.13 deprecates the argument in favor of `forward_sync_buffers`, which always synchronizes at construction.",
    cost="Correctness: the ranks silently compute with different buffers. The time that the flag saves was not "
    "measured; models without batch normalization or other changing buffers have little to send.",
    exceptions="All ranks draw the buffers from the same seed, or every rank loads a checkpoint that contains them "
    "before wrapping.",
    versions="torch 2.1 to 2.13 for the missing broadcast, 2.13 for the deprecation (reported if `target-torch` is "
    "2.13).",
    verification="Print a checksum of each buffer on every rank after wrapping.",
    references=(
        _DDP,
        Reference(
            "torch 2.1.2: DDP passes broadcast_buffers to its initial synchronisation",
            "https://github.com/pytorch/pytorch/blob/v2.1.2/torch/nn/parallel/distributed.py",
        ),
    ),
    reads=("py",),
    triggers=(b"broadcast_buffers",),
    confidence=Confidence.MEDIUM,
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: the buffers are now broadcast at construction or before each forward pass, which they were "
    "not before; `forward_sync_buffers` does not exist before torch 2.13.",
    probe=Probe("buffers-of-ranks", "the buffers of the ranks differ after wrapping"),
    overrides="the ranks compute with different buffers with it",
)

RULES = (BROADCAST_BUFFERS,)
