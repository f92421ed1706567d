"""Family 76: how checkpoints are written."""

from __future__ import annotations

from ldlm_lint.model import Applicability, Confidence, Consequence, Frequency, Probe, Reference, Rule

_SAVE = Reference("torch.save", "https://docs.pytorch.org/docs/stable/generated/torch.save.html")
_DDP_TUTORIAL = Reference(
    "DDP tutorial: save and load checkpoints", "https://docs.pytorch.org/tutorials/intermediate/ddp_tutorial.html"
)

CHECKPOINT_SAVED_BY_EVERY_RANK = Rule(
    code="E7602",
    symbol="checkpoint-saved-by-every-rank",
    frequency=Frequency.EPOCH,
    consequence=Consequence.DATA_LOSS,
    message="%(who)s of the training in %(where)s writes this file at the same time, because %(why)s on the way here: "
    "the ranks overwrite each other's data and the file can be broken; save on rank 0 only",
    summary="A checkpoint that all ranks of a distributed training write to the same path.",
    rationale="Every rank runs the same lines. Without a check of the rank, all ranks save to one path: they truncate "
    "and overwrite the file at the same time, and a reader, or the first rank to finish, finds a broken file. The "
    "tutorial on DistributedDataParallel saves in one process only.",
    cost="A checkpoint that may not load, and one write per rank instead of a single write.",
    exceptions="A check of the rank in the function, in a wrapper, in a decorator, at the call site or in any caller; "
    "a path that contains the rank; sharded checkpoints (`torch.distributed.checkpoint`, DeepSpeed's "
    "`save_checkpoint`, `accelerator.save_state`), which every rank must write; programs that start no process group.",
    versions="All versions.",
    verification="Start the training with two processes and check which of them open the file, or let every process "
    "log the save. The test suite contains a program in which two ranks write one file (gloo).",
    references=(_SAVE, _DDP_TUTORIAL),
    reads=("py",),
    triggers=(b"save",),
    confidence=Confidence.MEDIUM,
    applicability=Applicability.DISPLAY,
    fix_safety="Shown only: a `state_dict()` that gathers shards must be called on every rank, and the others may "
    "have to wait at a barrier before they read the file.",
    probe=Probe("checkpoint-files", "several ranks wrote the same path"),
)

RULES: tuple[Rule, ...] = (
    CHECKPOINT_SAVED_BY_EVERY_RANK,
)
