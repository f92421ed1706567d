"""The observed topics: each module has `Observer` classes and passes its records to a module of
`ldlm_lint.evidence.verdicts`."""

from __future__ import annotations

from ldlm_lint.probe.session import Observer

# The observers, as (module of this folder, class). Imported only inside a watched process.
ROOMS: tuple[tuple[str, str], ...] = (
    ("compilation", "CompilationObserver"),
    ("optimizers", "OptimizerObserver"),
    ("schedules", "ScheduleObserver"),
    ("zeroing", "ZeroingObserver"),
    ("scaling", "ScalingObserver"),
    ("switches", "SwitchObserver"),
    ("autocasts", "AutocastObserver"),
    ("operations", "OperationObserver"),
    ("attention", "AttentionObserver"),
    ("convolutions", "ConvolutionObserver"),
    ("evaluation", "EvaluationObserver"),
    ("graphs", "GraphObserver"),
    ("host_calls", "HostCallObserver"),
    ("host_syncs", "HostSyncObserver"),
    ("models", "Models"),
    ("activation_checkpointing", "ActivationCheckpointing"),
    ("parameters", "Parameters"),
    ("ddp", "DistributedDataParallel"),
    ("process_groups", "ProcessGroups"),
    ("loaders", "Loaders"),
    ("samplers", "Samplers"),
    ("copies", "Copies"),
    ("checkpoint_files", "CheckpointFiles"),
)


def observers() -> list[Observer]:
    """A fresh observer of each topic."""
    from importlib import import_module

    return [getattr(import_module(f"{__name__}.{room}"), name)() for room, name in ROOMS]
