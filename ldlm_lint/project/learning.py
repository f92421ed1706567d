"""Whether gradients are computed for training, or only inspected or timed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ldlm_lint.patterns import lazily
from ldlm_lint.project.traits import Trait

if TYPE_CHECKING:
    from ldlm_lint.project.index import Project

_LEARNS = Trait(
    lazily(rb"[oO]ptim|\.step\(|_step\(|learning_rate|\blr\b|zero_grad|train_batch|Trainer"),
    (b"ptim", b"step(", b"learning_rate", b"lr", b"zero_grad", b"train_batch", b"Trainer"),
    code=True,
)
# Gradients are inspected, or their computation is timed.
_LOOKS = Trait(
    lazily(rb"\.grad\b|perf_counter|time\.time\(|elapsed_time\(|timeit|profile"),
    (b".grad", b"perf_counter", b"time.time(", b"elapsed_time(", b"timeit", b"profile"),
    code=True,
)


def learns(project: Project, path: str) -> bool:
    """Whether a backward pass in a file may belong to a training.

    It does not if the gradients are printed, or the passes timed, and neither the file nor an importer mentions updates
    of parameters.
    """
    return (
        not project.any_shows((path,), _LOOKS)
        or project.any_shows((path,), _LEARNS)
        or project.any_shows(project.importers(path), _LEARNS)
    )
