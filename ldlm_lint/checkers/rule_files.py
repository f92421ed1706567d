"""The rules in their final form: one file each, with the texts, the query and the fix.

``ldlm_lint/checkers/<family>/<rule>.py`` has ``RULE`` and ``find(code)``, which yields its findings. What the settings of
a framework show in one place alone, whatever form they have there, says ``of_settings(section, options)``: it is asked
for each file by itself, so that a file that did not change is not read again.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple, cast

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode
    from ldlm_lint.frameworks.sections import Section
    from ldlm_lint.model import Finding, Rule

_FILES: tuple[str, ...] = (
    "checkpoints.checkpoint_load_unspecified",
    "checkpoints.checkpoint_load_without_map_location",
    "checkpoints.checkpoint_removed_before_replacement",
    "checkpoints.checkpoint_saved_by_every_rank",
    "checkpoints.checkpoint_saves_live_state",
    "checkpoints.non_atomic_checkpoint",
    "checkpoints.unbounded_checkpoints",
    "data.batch_size_drift",
    "data.blocking_host_to_device_copy",
    "data.dataloader_conflicting_options",
    "data.dataloader_in_main_process",
    "data.dataloader_too_many_workers",
    "data.dataloader_without_persistent_workers",
    "data.dataloader_without_pin_memory",
    "data.dataloader_without_prefetch",
    "data.dataloader_worker_count_may_be_zero",
    "data.dataloader_worker_options_without_workers",
    "data.sampler_without_set_epoch",
    "data.unsharded_distributed_data",
    "data.unsharded_iterable_dataset",
    "data.unsynchronized_copy_to_host",
    "distributed.accumulation_without_no_sync",
    "distributed.data_parallel",
    "distributed.ddp_broadcast_buffers",
    "distributed.ddp_find_unused_parameters",
    "distributed.ddp_gradient_copy",
    "distributed.environment_set_too_late",
    "distributed.excessive_collective_timeout",
    "distributed.find_unused_with_reentrant_checkpoint",
    "distributed.invalid_collective_timeout",
    "distributed.no_sync_outside_forward",
    "distributed.parameters_frozen_after_wrap",
    "distributed.rank_local_skip",
    "distributed.static_graph_with_dynamic_model",
    "distributed.static_graph_with_no_sync",
    "distributed.subgroup_timeout_not_inherited",
    "memory.anomaly_detection_left_on",
    "memory.cache_emptied_in_training_loop",
    "memory.checkpoint_keyword_only_callee",
    "memory.checkpoint_without_use_reentrant",
    "memory.device_synchronized_in_training_loop",
    "memory.evaluation_with_gradients",
    "memory.graph_retained_on_backward",
    "memory.host_sync_in_training_loop",
    "memory.loss_graph_accumulation",
    "memory.missing_activation_checkpointing",
    "memory.reentrant_checkpoint_misuse",
    "memory.requires_grad_toggled_per_step",
    "memory.whole_model_checkpoint",
    "optimizer.accumulation_loss_not_scaled",
    "optimizer.clip_before_unscale",
    "optimizer.fused_conflict",
    "optimizer.fused_fallback_ineffective",
    "optimizer.fused_lost_on_resume",
    "optimizer.gradient_accumulation_fixed",
    "optimizer.gradients_kept_as_zeros",
    "optimizer.optimizer_not_fused",
    "optimizer.scheduler_before_optimizer",
    "optimizer.scheduler_per_micro_batch",
    "precision.clamped_loss",
    "precision.compile_guarded_by_try",
    "precision.compile_result_dropped",
    "precision.convolution_autotuner_off",
    "precision.deprecated_amp_api",
    "precision.grad_scaler_with_bfloat16",
    "precision.mixed_tf32_apis",
    "precision.mse_on_unit_vectors",
    "precision.nondeterminism_guard_left_on",
    "precision.tf32_disabled",
    "precision.unfused_attention",
)


class RuleFile(NamedTuple):
    """A rule, in a tuple of its own, its query, and what it says about a section of settings, if anything."""

    rules: tuple[Rule, ...]
    module: ModuleType

    @property
    def find(self) -> Callable[[ProjectCode], Iterator[Finding]]:
        """The query."""
        return cast("Callable[[ProjectCode], Iterator[Finding]]", self.module.find)

    @property
    def of_settings(self) -> Callable[[Section, Mapping[str, object]], Iterator[Finding]] | None:
        """What it says about a section of settings."""
        return getattr(self.module, "of_settings", None)


@functools.cache
def rule_files() -> tuple[RuleFile, ...]:
    """All rules that have a file of their own."""
    files = [importlib.import_module(f"ldlm_lint.checkers.{name}") for name in _FILES]
    return tuple(RuleFile((file.RULE,), file) for file in files)


def findings_of(section: Section, options: Mapping[str, object]) -> Iterator[Finding]:
    """What rules say about the settings of a framework in one place: YAML, a launch line, a call in Python."""
    for file in rule_files():
        if file.of_settings is not None:
            yield from file.of_settings(section, options)
