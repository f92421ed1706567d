"""Family 76, checkpoint files: files that a run writes to disk and never deletes."""

from __future__ import annotations

from ldlm_lint.model import Applicability, Consequence, Frequency, Option, Probe, Reference, Rule

CHECKPOINTS_TO_KEEP = Option(
    "checkpoints-to-keep", 3, "number of checkpoints that the fix of unbounded-checkpoints keeps", minimum=1
)

KEEP_REASON = (
    "older checkpoints are deleted during the run, so no later resume or evaluation can use them; the best one stays only if the "
    "framework is told which metric decides"
)
"""Why the setting of a framework that deletes old checkpoints is not safe to add."""

ROTATION_REASON = (
    "old checkpoints are deleted, also those of earlier runs in the folder: keep the best ones, and those that code reads by "
    "their number"
)
"""Why the deletion of old files is only shown."""

UNBOUNDED_CHECKPOINTS = Rule(
    code="W7601",
    symbol="unbounded-checkpoints",
    frequency=Frequency.EPOCH,
    consequence=Consequence.DISK,
    message="%(what)s, and nothing deletes old ones: the disk fills until a save fails; keep only the last few",
    summary="Numbered checkpoints that nothing deletes.",
    rationale="A checkpoint with a new name for every step or epoch stays on the disk until something deletes it. "
    "With Adam or AdamW the optimizer state is two more copies of the parameters, so each file is about three times "
    "the weights in fp32. When the disk or the quota is full, the run ends or loses the checkpoint it needed.",
    cost="Disk: (steps / save interval) x about 3 x the size of the parameters in fp32.",
    exceptions="A handful of saves, an external job that deletes old checkpoints, or a study that needs every "
    "checkpoint. In configuration files and launch commands, up to 5 known saves and trainings of adapters, whose "
    "checkpoints are small, are not reported.",
    versions="All versions. Hugging Face's `save_total_limit` is unlimited (`None`) in every version read (4.22 to "
    "5.23). Lightning keeps all checkpoints with `save_top_k=-1`, fvcore's and detectron2's `PeriodicCheckpointer` "
    "without `max_to_keep`, and the CheckpointHook of mmcv and mmengine unless `max_keep_ckpts` is set. axolotl keeps "
    "4 by default and is not reported.",
    verification="Multiply the size of one checkpoint by the number of saves of the whole run and compare it with the quota.",
    references=(
        Reference(
            "TrainingArguments.save_total_limit",
            "https://huggingface.co/docs/transformers/main_classes/trainer#transformers.TrainingArguments.save_total_limit",
        ),
        Reference(
            "Lightning ModelCheckpoint",
            "https://lightning.ai/docs/pytorch/stable/api/lightning.pytorch.callbacks.ModelCheckpoint.html",
        ),
        Reference(
            "mmengine CheckpointHook (max_keep_ckpts is -1 by default)",
            "https://github.com/open-mmlab/mmengine/blob/86ffc19c9cbe85679283ac1d2f470f20078de9b4/mmengine/hooks/checkpoint_hook.py",
        ),
        Reference("torch.save", "https://docs.pytorch.org/docs/stable/generated/torch.save.html"),
    ),
    reads=("py", "sh", "cfg"),
    triggers=(b"",),
    setting_triggers=(b"save_", b"save-", b"num_train_epochs", b"num-train-epochs"),
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: it deletes files later, including those of earlier runs in the same folder. If a framework "
    "can delete old checkpoints, its setting is used (`save_total_limit`, `save_top_k`). For a hand-written "
    "`torch.save` of a numbered file a function is only shown that runs after it and deletes files of the same name with a "
    "lower number, except the last few. Files with a higher number, links and the targets of links stay. Whether one of the "
    "older files is the best one, or is read later by its number, is left to you.",
    options=(CHECKPOINTS_TO_KEEP,),
    probe=Probe("checkpoint-files", "every save wrote a new file and none was removed"),
)

RULES = (UNBOUNDED_CHECKPOINTS,)
