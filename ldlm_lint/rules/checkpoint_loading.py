"""Family 76: how checkpoints are read."""

from __future__ import annotations

from ldlm_lint.model import Applicability, Confidence, Consequence, Reference, Rule

_LOAD = Reference("torch.load", "https://docs.pytorch.org/docs/stable/generated/torch.load.html")
CHECKPOINT_LOAD_WITHOUT_MAP_LOCATION = Rule(
    code="W7605",
    symbol="checkpoint-load-without-map-location",
    consequence=Consequence.MEMORY,
    message="`torch.load()` without `map_location` puts tensors back on the GPU that saved them, usually `cuda:0`, in "
    'every rank of this training: that GPU holds one copy per rank; pass `map_location="cpu"`',
    summary="A checkpoint that every rank loads onto the device it was saved from.",
    rationale="Without `map_location` each tensor is restored on the device it was saved from. A checkpoint written "
    "by rank 0 contains cuda:0, so all ranks of a node put another copy of model and optimizer there. The tutorial on "
    "DistributedDataParallel asks for a `map_location` in every process.",
    cost="GPU memory: one copy of the checkpoint on the first GPU for every rank of the node, until that GPU runs out "
    "of memory.",
    exceptions="A checkpoint that was moved to the CPU before it was saved, a load that only one rank runs, and "
    "`mmap=True`.",
    versions="All versions.",
    verification="Look at the memory of the first GPU while the ranks resume. This needs several GPUs, so no test "
    "shows it.",
    references=(
        _LOAD,
        Reference(
            "DDP tutorial: save and load checkpoints",
            "https://docs.pytorch.org/tutorials/intermediate/ddp_tutorial.html",
        ),
    ),
    reads=("py",),
    triggers=(b"load(",),
    requires=((b"torch",),),
    confidence=Confidence.MEDIUM,
    default=False,
    applicability=Applicability.UNSAFE,
    fix_safety='Unsafe: with `map_location="cpu"` everything that is not passed to `load_state_dict` stays on the '
    "CPU. Offered only if the function uses the file for `load_state_dict` and for plain values such as the epoch.",
)

RULES: tuple[Rule, ...] = (CHECKPOINT_LOAD_WITHOUT_MAP_LOCATION,)
