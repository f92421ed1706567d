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
    rationale="Every process of a process group runs the same lines. A save that no rank is singled out for is done "
    "by all of them, to one path: they truncate and overwrite the file under each other's hands, and a reader, or the "
    "rank that is done first, finds a torn file. The tutorial on DistributedDataParallel saves in one process only.",
    cost="A checkpoint that may not load, and as many times the writing as there are ranks.",
    exceptions="A test of the rank in the function, in a wrapper, in a decorator, at the call site or in any caller; "
    "a path that holds the rank; sharded checkpoints (`torch.distributed.checkpoint`, DeepSpeed's `save_checkpoint`, "
    "`accelerator.save_state`), which every rank must write; programs that start no process group.",
    versions="All.",
    verification="Start the training with two processes and look at who opens the file, or let every process log the "
    "save. A program of the test suite shows two processes of a gloo group that write one file.",
    references=(_SAVE, _DDP_TUTORIAL),
    reads=("py",),
    triggers=(b"save",),
    confidence=Confidence.MEDIUM,
    applicability=Applicability.DISPLAY,
    fix_safety="Shown only: a `state_dict()` that gathers shards must be called on every rank, and the others may "
    "have to wait at a barrier before they read the file.",
    probe=Probe("checkpoint-files", "several ranks wrote the same path"),
)

NON_ATOMIC_CHECKPOINT = Rule(
    code="W7603",
    symbol="non-atomic-checkpoint",
    frequency=Frequency.EPOCH,
    consequence=Consequence.DATA_LOSS,
    message="`torch.save()` overwrites the last checkpoint in place: a run that ends during the save leaves neither the "
    "old nor the new one; write a temporary file and rename it",
    summary="A checkpoint that is written over the previous one.",
    rationale="`torch.save` truncates its file and fills it again. A job that is preempted, killed or out of disk in "
    "between leaves a file that no version of torch reads. A save under a temporary name, followed by `os.replace`, "
    "leaves the old file until the new one is whole.",
    cost="The whole run since the last other checkpoint, where the job ends during a save.",
    exceptions="Names with the step or the epoch in them, and functions that rename or copy files.",
    versions="All.",
    verification="Kill the run during a save and load the file. A program of the test suite does so.",
    references=(_SAVE, Reference("os.replace", "https://docs.python.org/3/library/os.html#os.replace")),
    reads=("py",),
    triggers=(b"save(",),
    requires=((b"torch",),),
    confidence=Confidence.MEDIUM,
    default=False,
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: for a moment both files lie on the disk, whatever watches the folder sees a second name, and a link "
    "in the file's place becomes a file. None where the path may be an open file or remote, or several ranks save.",
    probe=Probe("checkpoint-files", "a save wrote over the file that the one before had written"),
)

CHECKPOINT_REMOVED_BEFORE_REPLACEMENT = Rule(
    code="E7606",
    symbol="checkpoint-removed-before-replacement",
    frequency=Frequency.EPOCH,
    consequence=Consequence.DATA_LOSS,
    message="the last checkpoint is deleted here before its replacement is written: a run that ends in between has no "
    "checkpoint left; delete it after the save",
    summary="The only checkpoint is deleted, then the new one is written.",
    rationale="Between the deletion and the end of the save there is no checkpoint at all. A save takes long, fails "
    "on a full disk, and is what a preempted job is busy with; then the run has nothing to resume from.",
    cost="The whole run, where it ends between the deletion and the end of the save.",
    exceptions="A second checkpoint under another name, a copy or a renaming in the same function, temporary and lock "
    "files, and what a script deletes once before it begins to train.",
    versions="All.",
    verification="Let the save raise an exception, as a full disk does, and look for a checkpoint. A program of the "
    "test suite does so.",
    references=(_SAVE, Reference("os.replace", "https://docs.python.org/3/library/os.html#os.replace")),
    reads=("py",),
    triggers=(b"remove(", b"unlink(", b"rmtree("),
    requires=((b"save",),),
    confidence=Confidence.MEDIUM,
    applicability=Applicability.DISPLAY,
    fix_safety="Shown only: which files are the old checkpoint, and whether both fit on the disk, is for you to say.",
    probe=Probe("checkpoint-files", "the only checkpoint was removed before the next one was written"),
)

CHECKPOINT_SAVES_LIVE_STATE = Rule(
    code="E7607",
    symbol="checkpoint-saves-live-state",
    frequency=Frequency.EPOCH,
    consequence=Consequence.WRONG_RESULT,
    message="%(what)s, not a copy, and %(how)s: copy the state first",
    summary="A state that goes on changing while it waits to be saved.",
    rationale="The tensors of a `state_dict()` are those of the model and the optimizer. Handed to a thread, they are "
    "changed by the next steps while the thread writes: the file mixes states of several steps. Kept as the best "
    "state of a training, they are its last state when the loop ends. A dictionary comprehension copies nothing, and "
    "`.cpu()` leaves a tensor that is on the CPU as it is.",
    cost="A checkpoint that no step of the training ever had, or the last state under the name of the best, without "
    "any error.",
    exceptions="A copy (`copy.deepcopy`, `clone`), a function that waits for its thread, processes, which get a copy, "
    "and `torch.distributed.checkpoint.async_save`, which makes one.",
    versions="All. `torch.distributed.checkpoint.async_save` exists since torch 2.3.",
    verification="Keep `model.state_dict()`, take a step and compare one of its tensors with the model's. A program "
    "of the test suite saves in a thread and finds a later state in the file.",
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
    fix_safety="Shown only: `copy.deepcopy` needs the memory of the state once more, on the GPU where it lies there; a copy "
    "to the CPU of tensor by tensor may be the better one.",
)

RULES: tuple[Rule, ...] = (
    CHECKPOINT_SAVED_BY_EVERY_RANK,
    NON_ATOMIC_CHECKPOINT,
    CHECKPOINT_REMOVED_BEFORE_REPLACEMENT,
    CHECKPOINT_SAVES_LIVE_STATE,
)
