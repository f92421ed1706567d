"""The trainings of a file: where they run, with how many ranks, with whose settings."""

from __future__ import annotations

import re

from ldlm_lint.patterns import lazily
from ldlm_lint.project.filesets import FileSet
from ldlm_lint.project.index import Project
from ldlm_lint.project.traits import Trait
from ldlm_lint.rules.roles import is_diagnostic
from ldlm_lint.shell.embedded_paths import script_of

_TUTORIAL = lazily(r"(?:^|[/_-])(?:tutorials?|toys?|demos?|dummy|mock|quickstart)(?:[/_.-]|$)", re.I)
_READ_OPTIONS = frozenset(
    {"absl", "argparse", "click", "draccus", "fire", "hydra", "jsonargparse", "simple_parsing", "tyro", "typer", "yacs"}
)
"""Packages by which a program takes its options."""
_MANY_RANKS = Trait(
    lazily(
        rb"init_process_group|DistributedDataParallel|FullyShardedDataParallel|\bAccelerator\(|deepspeed\.init|init_distributed"
        rb"|(?:import|from)[ \t]+(?:pytorch_)?lightning"
    ),
    (
        *(b"init_process_group", b"DistributedDataParallel", b"FullyShardedDataParallel", b"Accelerator("),
        *(b"deepspeed.init", b"init_distributed", b"lightning"),
    ),
)
# The marks of a training step for `ldlm_lint.python.flow.is_backward`, as text.
BACKWARD = Trait(
    lazily(
        rb"(?:\.\s*(?:backward|manual_backward|zero_grad|train_batch)"
        rb"|train(?:ing)?_(?:step|batch|iter|iteration|epoch|one_epoch|one_step)(?:_fn)?|optimize_parameters)\s*\("
    ),
    (b"backward", b"zero_grad", b"train_", b"training_", b"optimize_parameters"),
)
ON_TPU = Trait(lazily(rb"torch_xla"), (b"torch_xla",))


def is_tutorial(project: Project, path: str) -> bool:
    """A file in a folder of tutorials, toys or demonstrations, or one with such a name and without options.

    A program with options is run repeatedly, whatever its name: the only training of many projects is
    ``tutorial_train.py``.
    """
    folder, _, name = path.removeprefix(project.root).rpartition("/")
    if _TUTORIAL.search(folder + "/"):
        return True
    return _TUTORIAL.search(name) is not None and not _takes_options(project, path)


def _takes_options(project: Project, path: str) -> bool:
    imported = {name.partition(".")[0] for name in project.skim(path).bound}
    return not imported.isdisjoint(_READ_OPTIONS)


def is_probe(path: str) -> bool:
    """A file that debugs, tests or measures by its name; a program inside a script has no name."""
    return script_of(path) is None and is_diagnostic(path, ())


def trainings_of(project: Project, path: str) -> FileSet:
    """All files of the trainings that use a file."""
    return project.trainings_of(path)


def trains_on_cuda(project: Project, path: str) -> bool:
    """Whether a training that uses a file mentions CUDA and not of TPUs; not for tutorials."""
    files = trainings_of(project, path)
    if is_tutorial(project, path) or not project.any_skim(files, "cuda"):
        return False
    return not project.any_shows(files, ON_TPU)


def runs_many_ranks(project: Project, path: str) -> bool:
    """Whether a training that uses a file creates a process group, or has a launcher or framework that does."""
    return project.any_shows(trainings_of(project, path), _MANY_RANKS)
