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

CHECKPOINT_SAVES_LIVE_STATE = Rule(
    code="E7607",
    symbol="checkpoint-saves-live-state",
    frequency=Frequency.EPOCH,
    consequence=Consequence.WRONG_RESULT,
    message="%(what)s, not a copy, and %(how)s: copy the state first",
    summary="A state that keeps changing while it waits to be saved.",
    rationale="The tensors of a `state_dict()` are those of the model and the optimizer, not copies. If a thread "
    "saves them, the next steps change them while the thread writes: the file mixes states of several steps. If they "
    "are kept as the best state of a training, they hold the last state when the loop ends. A dictionary "
    "comprehension copies nothing, and `.cpu()` does not copy a tensor that is already on the CPU.",
    cost="A checkpoint of a state that no step of the training had, or the last state saved as the best one, without "
    "any error.",
    exceptions="A copy (`copy.deepcopy`, `clone`), a function that waits for its thread, processes, which get a copy, "
    "and `torch.distributed.checkpoint.async_save`, which makes one.",
    versions="All versions. `torch.distributed.checkpoint.async_save` exists since torch 2.3.",
    verification="Keep `model.state_dict()`, take a step and compare one of its tensors with the model's. The test "
    "suite contains a program that saves in a thread and finds a later state in the file.",
    references=(
        Reference(
            "Saving and loading models", "https://docs.pytorch.org/tutorials/beginner/saving_loading_models.html"
        ),
        Reference(
            "Asynchronous saving", "https://docs.pytorch.org/tutorials/recipes/distributed_async_checkpoint_recipe.html"
        ),
    ),
    reads=("py",),
    triggers=(b"state_dict(",),
    confidence=Confidence.MEDIUM,
    applicability=Applicability.DISPLAY,
    fix_safety="Shown only: `copy.deepcopy` needs the memory of the state once more, on the GPU if the state is "
    "there. Copying it to the CPU tensor by tensor may be better.",
)

RULES: tuple[Rule, ...] = (
    CHECKPOINT_SAVED_BY_EVERY_RANK,
    CHECKPOINT_SAVES_LIVE_STATE,
)
