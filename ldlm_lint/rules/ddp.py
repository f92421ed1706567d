"""Family 72, distributed: options of a DistributedDataParallel wrapper with a cost in every step."""

from __future__ import annotations

from ldlm_lint.model import Applicability, Confidence, Consequence, Frequency, Probe, Reference, Rule

_DDP = Reference(
    "DistributedDataParallel",
    "https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html",
)

FIND_UNUSED_PARAMETERS = Rule(
    code="W7226",
    symbol="ddp-find-unused-parameters",
    frequency=Frequency.STEP,
    consequence=Consequence.SLOW,
    message="`find_unused_parameters=True` makes DDP search the autograd graph in every step and keeps it from rebuilding "
    "its gradient buckets, which costs time: set it to False only after checking that every parameter gets a gradient",
    summary="DDP with a literal `find_unused_parameters=True`, in Python or in the settings of a framework.",
    rationale="With the flag, DDP searches the autograd graph of every forward pass for parameters that get no "
    "gradient, and runs one more all-reduce per backward pass. It never rebuilds its buckets in the order in which "
    "gradients become ready, which reduces overlap. Models that use all their parameters in every step pay for this "
    "and gain nothing. Models that do not (mode switches, frozen parts, unrouted experts, layer-drop) need the flag: "
    "without it the second forward pass raises RuntimeError.",
    cost="One graph traversal and one extra all-reduce per step, and no bucket rebuild. No source gives a percentage, and one project "
    "that removed the flag measured no speed-up (KAIR#103).",
    exceptions="A model in which a parameter gets no gradient in some step on some rank (branches on the mode, "
    "freezing after wrapping, mixtures of experts, multi-task heads) needs the flag. With `static_graph=True` DDP "
    "does none of this, and the flag is only redundant.",
    versions="torch 2.0 to 2.13.",
    verification="Run one eager step and list the parameters whose `.grad` is `None`; with "
    "TORCH_DISTRIBUTED_DEBUG=INFO DDP's own error names them. PyTorch warns once if it found no unused parameter.",
    references=(
        _DDP,
        Reference(
            "Performance tuning guide: DDP",
            "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
        ),
        Reference("KAIR#103", "https://github.com/cszn/KAIR/issues/103"),
    ),
    reads=("py", "sh", "cfg"),
    triggers=(),
    setting_triggers=(b"find_unused_parameters", b"find-unused-parameters"),
    applicability=Applicability.DISPLAY,
    fix_safety="Shown only: with an unused parameter `find_unused_parameters=False` crashes in the second iteration, "
    "as it did in the project that this advice was written for. The probe tells whether every parameter gets a "
    "gradient.",
    probe=Probe(
        "parameters-without-gradient",
        "no parameter was without a gradient on any rank in any step",
        experiment="ddp",
        whole_run=True,
    ),
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

RULES = (FIND_UNUSED_PARAMETERS, BROADCAST_BUFFERS)
