"""Detectors: the ones for a series, by the canonical name of its column.

Each is pure, incremental and of constant memory. Validation series are only checked for non-finite and frozen values:
they have few points, and rise when a model overfits.
"""

from __future__ import annotations

import re

from ldlm_lint.monitor.alarms import Level
from ldlm_lint.monitor.detectors.base import Detector
from ldlm_lint.monitor.detectors.finite import NotANumberGradient, NotANumberLoss
from ldlm_lint.monitor.detectors.gradients import GradientExplosion, GradientVanished
from ldlm_lint.monitor.detectors.level import Course, FrozenLoss
from ldlm_lint.monitor.detectors.redrawn import Redrawn
from ldlm_lint.monitor.detectors.scaler import LossScale, SkippedSteps
from ldlm_lint.monitor.detectors.schedule import LearningRate
from ldlm_lint.monitor.detectors.speed import LoaderStall, ThroughputDrop
from ldlm_lint.monitor.detectors.spike import LossSpike
from ldlm_lint.monitor.records import Column, Template

RATES = ("tokens_per_s", "samples_per_s", "iterations_per_s", "step_time_s")
"""The speed of a template is its first column of these; samples become slower where they become longer."""
BARS = ("tqdm", "rich", "yolo")
"""Templates whose lines are drawn repeatedly."""
_LOSS = re.compile(r"(?:^|[^a-z])(?:loss|nll)(?:$|[^a-z])", re.IGNORECASE)
# A best-so-far value begins at infinity; the underlying series is judged itself.
_RECORD = re.compile(r"(?:^|[^a-z])(?:best|lowest|min|minimum)(?:$|[^a-z])", re.IGNORECASE)
VALIDATION_RUN = 20

__all__ = ["LoaderStall", "detectors", "finite_judge", "speed_column", "stall_columns"]


def finite_judge(column: Column, name: str) -> NotANumberLoss | None:
    """The judge of non-finite values in this column; None if they are no problem."""
    if column.key == "loss":
        return NotANumberLoss(name)
    if column.key == "grad_norm":
        return NotANumberGradient(name)
    said = column.raw.replace("_", " ")
    if not column.key and _LOSS.search(said) and not _RECORD.search(said):
        return NotANumberLoss(name, Level.WARNING)
    return None


def detectors(template: Template, index: int, name: str) -> list[Detector]:
    """The detectors of a template's column."""
    key = template.columns[index].key
    if template.split == "val":
        return [FrozenLoss(name, VALIDATION_RUN)] if key == "loss" else []
    if index == speed_column(template):
        judge = ThroughputDrop(name, inverse=key == "step_time_s")
        return [Redrawn(judge, inverse=judge.inverse) if template.name in BARS else judge]
    return [make(name) for make in _BY_KEY.get(key, ())]


def speed_column(template: Template) -> int | None:
    """The column that a template's throughput is judged by."""
    keys = [column.key for column in template.columns]
    return next((keys.index(rate) for rate in RATES if rate in keys), None)


def stall_columns(template: Template) -> tuple[int, int] | None:
    """The columns of data time and step time, where a template has both."""
    keys = [column.key for column in template.columns]
    if template.split == "val" or "data_time_s" not in keys or "step_time_s" not in keys:
        return None
    return keys.index("data_time_s"), keys.index("step_time_s")


_BY_KEY = {
    "loss": (LossSpike, FrozenLoss, Course),
    "grad_norm": (GradientExplosion, GradientVanished),
    "lr": (LearningRate,),
    "loss_scale": (LossScale,),
    "skipped_steps": (SkippedSteps,),
}
