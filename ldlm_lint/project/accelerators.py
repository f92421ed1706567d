"""Whether a training runs on an accelerator, judging by the texts of its files."""

from __future__ import annotations

import re
from collections.abc import Collection

from ldlm_lint.patterns import lazily
from ldlm_lint.project.index import Project
from ldlm_lint.project.questions.base import Context
from ldlm_lint.project.training import ON_TPU, is_probe, is_tutorial, trainings_of
from ldlm_lint.project.traits import Trait

_DEVICE = Trait(
    lazily(
        rb"cuda|torch\.accelerator|\bAccelerator\(|lightning|transformers|deepspeed|accelerate|\btrl\b|\.to\(.*device"
        rb"|\b(?:xpu|npu|mps)\b"
    ),
    (
        *(b"cuda", b"torch.accelerator", b"Accelerator(", b"lightning", b"transformers", b"deepspeed", b"accelerate"),
        *(b"device", b"xpu", b"npu", b"mps", b"trl"),
    ),
)
_DIFFERENTIATES = Trait(lazily(rb"\.backward\("), (b".backward(",))
_LEARNS = Trait(
    lazily(rb"optim|\.step\(|Trainer|lightning|deepspeed|accelerat|colossalai|\blr\b|learning_rate|\btrain(?:_|ing|\()|_train\b"),
    (b"optim", b".step(", b"Trainer", b"lightning", b"deepspeed", b"accelerat", b"colossalai", b"lr", b"rate", b"train"),
)
_PREDICTS = lazily(
    r"(^|/)(inference|infer|eval|evaluation|evaluate|serving|sampling|generation)(/|\.py$)"
    r"|/(eval|inference|infer|evaluate|generate|predict|sample|demo|convert|export)_[^/]*\.py$"
    r"|_(eval|inference|evaluation|generation|demo)\.py$",
    re.I,
)


def only_differentiates(project: Project, path: str) -> bool:
    """A file with gradients that no weights follow: an attack, a saliency map, a check."""
    return project.any_shows([path], _DIFFERENTIATES) and not project.any_shows([path], _LEARNS)


def trains_on_device(context: Context, path: str) -> bool:
    """Whether the training steps of a file run on an accelerator whose kernels the host does not wait for, in no tutorial, test or measurement."""
    project, known = context.project, context.answers
    key = ("trains-on-device", path)
    if key not in known:
        files = trainings_of(project, path) or project.training_files | {path}
        left_out = project.is_test(path) or is_tutorial(project, path) or is_probe(path)
        left_out = left_out or (_predicts(project, path) and not project.skim(path).trains)
        known[key] = not left_out and _on_device(project, files)
    return known[key]


def _predicts(project: Project, path: str) -> bool:
    """A file that evaluates or runs a model, by its name or folder."""
    return _PREDICTS.search(path.removeprefix(project.root)) is not None


def _on_device(project: Project, files: Collection[str]) -> bool:
    if not project.any_skim(files, "cuda") and project.any_shows(files, ON_TPU):
        return False
    return project.any_shows(files, _DEVICE)
