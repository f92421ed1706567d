"""Questions about models: which blocks compute attention, and whether activation checkpointing exists."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from ldlm_lint.concepts.block_sizes import BlockSizes
from ldlm_lint.concepts.builders import Runs
from ldlm_lint.concepts.recorded_runs import RecordedRuns
from ldlm_lint.model import Finding
from ldlm_lint.patterns import lazily
from ldlm_lint.program.handles import Call, Class
from ldlm_lint.project.engines import checkpoints_activations
from ldlm_lint.project.frozen_files import hands_out_frozen, is_taken_without_gradients
from ldlm_lint.project.index import Project
from ldlm_lint.project.questions.base import Context, Question, Verdict

if TYPE_CHECKING:
    from ldlm_lint.concepts.block_sizes import Size

_MODULES = frozenset({"Module", "LightningModule", "PreTrainedModel", "ModelMixin"})
_DEPTH = 3
_ATTENDS = lazily(rb"attn|attention", re.I)
_BLOCK_NAME = lazily(
    r"(transformer|attention|attn|dit|vit|decoder|encoder|llama|gpt|bert)\w*(block|layer)|^(block|layer)$", re.I
)


def _no_activation_checkpointing(context: Context, finding: Finding, subject: str) -> Verdict:
    """Neither the model, nor the files of its bases and blocks, nor the trainings that use it have it.

    ``subject`` contains the names of the classes and, after a bar, the origins of their bases and blocks. A switch of
    another model does not count.
    """
    path = finding.span.path
    names, _, origins = subject.rpartition("|")
    if not may_lack_checkpointing(context, path, origins, tuple(names.split())) or hands_out_frozen(context.project, path):
        return Verdict(False)
    # A program that creates the model by a name in its configuration may enable checkpointing for it.
    project, programs = context.project, list(context.named.trained_with(path, lambda _: True))
    if not programs and is_taken_without_gradients(project, path):
        return Verdict(False)
    return Verdict(not any(project.any_that(project.reach(one), "no-model-checkpoints", _speaks_for_all(project)) for one in programs))


def may_lack_checkpointing(context: Context, path: str, origins: str = "", names: tuple[str, ...] | None = None) -> bool:
    """Whether no known code of these classes in a file, nor of the files of their origins, checkpoints activations.

    With an empty tuple it is about the file's code outside of classes, with None about anything in the file.
    """
    project = context.project
    trainers = project.trainers_of(path)
    resolved = (project.resolve(path, name) for name in origins.split())
    speaking = trainers | {found[0] for found in resolved if found is not None}
    if project.any_skim(speaking - {path}, "checkpoints_activations"):
        return False
    if names is not None and project.skim(path).checkpoints_activations:
        from ldlm_lint.project.other_models import is_spoken_of

        if is_spoken_of(context.models, path, project.data(path), names):
            return False
    if project.any_that(project.around(path), "no-model-checkpoints", _speaks_for_all(project)):
        return False
    if not any(map(checkpoints_activations, context.engines.configs.values())):
        # The launching programs of a file are determined only if needed: that reads all launches.
        return True
    engines = (engine for one in (path, *trainers) for engine in context.engines.of(one))
    return not any(map(checkpoints_activations, engines))


def _speaks_for_all(project: Project) -> Callable[[str], bool]:
    """Whether a file without its own models checkpoints activations."""
    return lambda path: project.skim(path).checkpoints_activations and path not in project.derivations.holding(_MODULES)


def _activations_are_kept(context: Context, finding: Finding, names: str) -> Verdict:
    """True unless every run of the models of these classes is known to be unrecorded, or too small to matter.

    The message says what checkpointing saves, where the code shows the size of the models.
    """
    path, classes = finding.span.path, names.split()
    if path not in context.project.files or all(_keeps_nothing(context, path, name) for name in classes):
        return Verdict(False)
    sizes = [size for one in classes if (size := _size_of(context, path, one)) is not None]
    if len(sizes) == len(classes) and all(one.is_tiny for one in sizes):
        return Verdict(False)
    return Verdict(True, args=(("size", max(sizes).described if sizes else ""),))


def _checkpoint_is_recorded(context: Context, finding: Finding, _subject: str) -> Verdict:
    """Always true: without a backward pass a checkpointed segment only runs, which implementation it chooses matters
    little."""
    view = context.view
    module = view.module(finding.span.path)
    call = view.call_at(module, view.place_at(module, finding.span.start)) if module is not None else None
    if module is None or call is None or view[RecordedRuns].is_recorded(Call(view, module.base | call)):
        return Verdict(True)
    return Verdict(True, minor="the model around it runs only where gradients are off")


def _size_of(context: Context, path: str, name: str) -> Size | None:
    owner = context.view.class_at(path, name)
    return context.view[BlockSizes].of(owner) if owner is not None else None


def _keeps_nothing(context: Context, path: str, name: str) -> bool:
    """Whether a model is never built, or never with blocks, or runs only where autograd records nothing."""
    view, owner = context.view, context.view.class_at(path, name)
    if owner is not None and (
        not view[Runs].may_be_built(Class(view, owner)) or view[RecordedRuns].is_never_recorded(Class(view, owner)) or view[BlockSizes].has_none(owner)
    ):
        return True
    return context.unlearning.keeps_nothing(path, name)


def _class_attends(context: Context, finding: Finding, name: str) -> Verdict:
    """Whether a block's class, by its qualified name, computes attention; another package's is judged by its name."""
    resolved = context.project.resolve(finding.span.path, name)
    if resolved is not None:
        return Verdict(_ATTENDS.search(context.project.data(resolved[0])) is not None)
    return Verdict(not name.startswith(".") and _BLOCK_NAME.search(name.rpartition(".")[2]) is not None)


def _class_is_foreign(context: Context, finding: Finding, name: str) -> Verdict:
    """Whether a class, by its qualified name, does not belong to the project."""
    path = finding.span.path
    return Verdict(path in context.project.files and context.project.resolve(path, name) is None)


def _class_is_module(context: Context, finding: Finding, names: str) -> Verdict:
    """Whether one of a class's bases, by their qualified names, is a class of the project that derives from torch's Module."""
    found = (context.project.resolve(finding.span.path, name) for name in names.split())
    return Verdict(any(one is not None and _is_module(context.project, *one) for one in found))


def _is_module(project: Project, path: str, name: str, depth: int = 0) -> bool:
    """Whether a class derives from torch's Module, itself or through classes of its file."""
    bases = project.derivations.bases(path, name)
    if not bases.isdisjoint(_MODULES):
        return True
    return depth < _DEPTH and any(_is_module(project, path, one, depth + 1) for one in bases - {name})


def _blocks_are_run(context: Context, finding: Finding, names: str) -> Verdict:
    """Always true: the fix for the classes of these names, if they run their blocks in a known way."""
    from ldlm_lint.project.activation_fix import checkpoint_fix
    from ldlm_lint.project.hub_models import enabling_fix

    project, models, path = context.project, context.models, finding.span.path
    classes = names.split()
    fix = checkpoint_fix(project, models, path, classes, lambda name: _class_attends(context, finding, name).holds)
    return Verdict(True, fix=fix or enabling_fix(project, models, path, classes))


QUESTIONS: dict[str, Question] = {
    "no-activation-checkpointing": _no_activation_checkpointing,
    "activations-are-kept": _activations_are_kept,
    "checkpoint-is-recorded": _checkpoint_is_recorded,
    "class-attends": _class_attends,
    "class-is-foreign": _class_is_foreign,
    "class-is-module": _class_is_module,
    "blocks-are-run": _blocks_are_run,
}
