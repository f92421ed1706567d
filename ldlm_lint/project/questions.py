"""The questions that findings ask of the project; each answer says whether the finding stands, and why.

A question is asked with the finding and the subject of its claim. Where the project does not decide it, the answer
is no: unknown is not a finding.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

from ldlm_lint.model import Finding, Related, Span
from ldlm_lint.project.buffers import random_buffer, seeds_all_ranks_alike
from ldlm_lint.project.calls import Calls
from ldlm_lint.project.datasets import Datasets, Load
from ldlm_lint.project.index import Project
from ldlm_lint.project.loaders import Site, Tracer
from ldlm_lint.project.sharding import shards_with_fsdp
from ldlm_lint.project.steps import Steps
from ldlm_lint.project.training import is_tutorial, runs_many_ranks, setting_feeds_workers, trains_on_cuda
from ldlm_lint.project.wrapped import Wraps
from ldlm_lint.python.skim import reads_variable, without_comments
from ldlm_lint.python.slots import Slot

_ATTENDS = re.compile(rb"attn|attention", re.I)
_DETACHES_GRADIENTS = re.compile(rb"grad\.detach_\(|dist_autograd|distributed\.autograd")
_SYNCS_ITSELF = re.compile(
    rb"no_sync|require_backward_grad_sync|set_requires_gradient_sync|static_graph|deepspeed\.initialize|accelerator\.\w|\bAccelerator\("
    rb"|fully_shard|FullyShardedDataParallel"
)
_DIVIDES_ACCUMULATION = re.compile(
    rb"accum\w*[\"'\]]*\s*(?://?=|=[^\n=]*/[^\n]*(?:world|gpus|device_count|num_processes|num_devices))", re.I
)
_BLOCK_NAME = re.compile(
    r"(transformer|attention|attn|dit|vit|decoder|encoder|llama|gpt|bert)\w*(block|layer)|^(block|layer)$", re.I
)


@dataclass(frozen=True)
class Verdict:
    """Whether a claim holds, the places that show it, and message fields that it fills."""

    holds: bool
    related: tuple[Related, ...] = ()
    args: tuple[tuple[str, object], ...] = ()


class Context:
    """A project with the analyses that questions share."""

    def __init__(self, project: Project) -> None:
        self.project = project

    @cached_property
    def calls(self) -> Calls:
        """The call graph."""
        return Calls(self.project)

    @cached_property
    def tracer(self) -> Tracer:
        """The value tracer."""
        return Tracer(self.project, self.calls)

    @cached_property
    def wraps(self) -> Wraps:
        """The models that DDP wraps."""
        return Wraps(self.project, self.calls)

    def runs_training(self, path: str) -> bool:
        """Whether a file has a backward pass, hands the training to a Trainer, or calls a function of the project that trains."""
        functions = self.project.flow(path).functions
        return self.project.skim(path).trains or any(self.calls.trains(path, one.scope) for one in functions)

    @cached_property
    def datasets(self) -> Datasets:
        """Where the datasets of loaders come from."""
        return Datasets(self.project, self.calls)

    def line_span(self, path: str, line: int) -> Span:
        """The text of a line, without its indentation, as a span."""
        data = self.project.data(path)
        start = 0
        for _ in range(line - 1):
            start = data.find(b"\n", start) + 1
        end = data.find(b"\n", start)
        text = data[start : end if end >= 0 else len(data)]
        return Span(path, start + len(text) - len(text.lstrip()), start + len(text.rstrip()))


def decide(finding: Finding, context: Context) -> Finding | None:
    """The finding with what the project adds to it, or None where a claim does not hold."""
    for claim in finding.claims:
        verdict = QUESTIONS[claim.kind](context, finding, claim.subject)
        if not verdict.holds:
            return None
        finding = replace(
            finding,
            related=finding.related + verdict.related,
            args=tuple(sorted((dict(finding.args) | dict(verdict.args)).items())),
        )
    return replace(finding, claims=())


def _variable_is_unread(context: Context, _finding: Finding, name: str) -> Verdict:
    project = context.project
    return Verdict(not any(reads_variable(project.data(path), name) for path in project.files))


def _loader_is_reiterated(context: Context, finding: Finding, position: str) -> Verdict:
    if context.project.is_test(finding.span.path) or is_tutorial(context.project, finding.span.path):
        return Verdict(False)
    site = next((one for one in context.tracer.sites(finding.span.path, position) if one.repeated), None)
    return _at_site(context, finding, site, "it is iterated here, again and again")


def _loader_feeds_training(context: Context, finding: Finding, position: str) -> Verdict:
    if context.project.is_test(finding.span.path) or is_tutorial(context.project, finding.span.path):
        return Verdict(False)
    sites = context.tracer.sites(finding.span.path, position)
    site = next((one for one in sites if context.tracer.trains(one)), None)
    return _at_site(context, finding, site, "this loop trains on it")


def _at_site(context: Context, finding: Finding, site: Site | None, note: str) -> Verdict:
    if site is None:
        return Verdict(False)
    name = site.path.rpartition("/")[2]
    where = f"{name}:{site.line}" if site.line else name
    related = (Related(context.line_span(site.path, site.line), note),) if site.line else ()
    if related and related[0].span.path == finding.span.path and related[0].span.start == finding.span.start:
        related = ()
    return Verdict(True, related, (("where", where),))


def _optimizer_trains_on_cuda(context: Context, finding: Finding, _subject: str) -> Verdict:
    project, path = context.project, finding.span.path
    if project.is_test(path) or is_tutorial(project, path) or b"torch_xla" in project.data(path):
        return Verdict(False)
    for trainer in project.trainers_of(path):
        engine = project.skim(trainer).engine or project.skim(path).engine
        if not engine and any(project.skim(one).cuda for one in project.reach(trainer)):
            return Verdict(True)
    return Verdict(False)


def _model_trains(context: Context, finding: Finding, model: str) -> Verdict:
    project, path = context.project, finding.span.path
    if project.is_test(path):
        return Verdict(False)
    for trainer in project.trainers_of(path):
        if any(model in project.skim(one).called for one in project.reach(trainer)):
            return Verdict(True)
    return Verdict(False)


def _file_trains(context: Context, finding: Finding, _subject: str) -> Verdict:
    project = context.project
    return Verdict(finding.span.path in project.training_files)


def _no_activation_checkpointing(context: Context, finding: Finding, _subject: str) -> Verdict:
    """Neither in the model's file, nor in what it imports, nor in the training files that use it."""
    project, path = context.project, finding.span.path
    flow = project.reach(path).union(project.trainers_of(path))
    return Verdict(not any(project.skim(one).checkpoints_activations for one in flow))


def _class_attends(context: Context, finding: Finding, name: str) -> Verdict:
    """Whether a block's class, by its qualified name, computes attention; another package's is told by its name."""
    resolved = context.project.resolve(finding.span.path, name)
    if resolved is not None:
        return Verdict(_ATTENDS.search(context.project.data(resolved[0])) is not None)
    return Verdict(not name.startswith(".") and _BLOCK_NAME.search(name.rpartition(".")[2]) is not None)


def _stands_in_training_loop(context: Context, finding: Finding, place: str) -> Verdict:
    path = finding.span.path
    if context.project.is_test(path):
        return Verdict(False)
    scope, _, loops = place.partition("|")
    found = context.calls.in_training_loop(path, scope, [int(line) for line in loops.split(",") if line])
    if found is None:
        return Verdict(False)
    return Verdict(True, (Related(context.line_span(*found), "in this training loop"),))


def _nothing_prunes(context: Context, finding: Finding, _subject: str) -> Verdict:
    """Neither the file, nor what it imports, nor the training files that use it delete or rotate checkpoints."""
    project, path = context.project, finding.span.path
    flow = project.reach(path).union(*(project.reach(one) for one in project.trainers_of(path)))
    return Verdict(not any(project.skim(one).prunes for one in flow))


def _callee_saves(context: Context, finding: Finding, position: str) -> Verdict:
    path = finding.span.path
    calls = (call for call in context.project.flow(path).calls if call.position == position)
    return Verdict(any(context.calls.saves(path, call.callee) for call in calls))


def _belongs_to_training(context: Context, finding: Finding, _subject: str) -> Verdict:
    """A training is reached from the same files as this one; a script that only predicts reaches none."""
    path = finding.span.path
    return Verdict(not context.project.is_test(path) and bool(context.project.trainers_of(path)))


def _wrapped_model_trains(context: Context, finding: Finding, _subject: str) -> Verdict:
    """The file computes gradients, itself or through what it calls, or a file does that imports it."""
    project, path = context.project, finding.span.path
    if project.is_test(path):
        return Verdict(False)
    near = (path, *(one for one in project.trainers_of(path) if one != path))
    return Verdict(any(context.runs_training(one) for one in near))


def _gradients_stay_attached(context: Context, finding: Finding, _subject: str) -> Verdict:
    """Nothing near the training detaches gradients in place, which a view does not allow, or keeps them elsewhere."""
    project, path = context.project, finding.span.path
    near = project.reach(path).union(*(project.reach(one) for one in project.trainers_of(path)))
    return Verdict(not any(_DETACHES_GRADIENTS.search(project.data(one)) for one in near))


def _model_draws_buffers(context: Context, finding: Finding, names: str) -> Verdict:
    project, path = context.project, finding.span.path
    found = random_buffer(project, path, names.split())
    if found is None or seeds_all_ranks_alike(project, path):
        return Verdict(False)
    model, buffer = found
    problem = f"is False, which skips the broadcast at construction since torch 2.1: {model} draws {buffer!r} at random on each rank"
    return Verdict(True, args=(("problem", problem),))


def _ddp_model_is_called(context: Context, finding: Finding, slots: str) -> Verdict:
    """One of the variables that a loop calls holds a DDP model, and nothing on its way takes care of the synchronisation."""
    project, path = context.project, finding.span.path
    if project.is_test(path):
        return Verdict(False)
    for slot in slots.split(";"):
        wrap = context.wraps.of(path, Slot(*slot.split(":")))
        if wrap is None:
            continue
        near = wrap.files | project.imported_by(path) | {path}
        holds = not any(_SYNCS_ITSELF.search(without_comments(project.data(one))) for one in near)
        return Verdict(holds, (Related(context.line_span(wrap.path, wrap.line), "the model is wrapped here"),))
    return Verdict(False)


def _stands_outside_tests(context: Context, finding: Finding, _subject: str) -> Verdict:
    return Verdict(not context.project.is_test(finding.span.path))


def _dataset_works_per_item(context: Context, finding: Finding, position: str) -> Verdict:
    """A dataset that nobody knows may do so."""
    return Verdict(context.datasets.load(finding.span.path, position) is not Load.NONE)


def _trains_on_cuda(context: Context, finding: Finding, _subject: str) -> Verdict:
    return Verdict(trains_on_cuda(context.project, finding.span.path))


def _runs_many_ranks(context: Context, finding: Finding, _subject: str) -> Verdict:
    return Verdict(runs_many_ranks(context.project, finding.span.path))


def _setting_feeds_loader_workers(context: Context, finding: Finding, name: str) -> Verdict:
    return Verdict(setting_feeds_workers(context.project, finding.span.path, name))


def _runs_in_every_step(context: Context, finding: Finding, place: str) -> Verdict:
    """A place runs in every step of a training that may run on several ranks."""
    path, steps = finding.span.path, Steps(context.calls)
    scope, _, loops = place.partition("|")
    if context.project.is_test(path) or not steps.distributed(path):
        return Verdict(False)
    found = steps.every_step(path, scope, [int(line) for line in loops.split(",") if line])
    if found is None:
        return Verdict(False)
    where = f"{found[0].rpartition('/')[2]}:{found[1]}"
    return Verdict(True, (Related(context.line_span(*found), "this runs in every step"),), (("where", where),))


def _accumulation_is_not_divided(context: Context, _finding: Finding, entry: str) -> Verdict:
    """No code of a launched file, or of the project where that is not known, divides the steps by the world size."""
    project = context.project
    entries = [path for path in project.files if entry.endswith(".py") and path.endswith(f"/{entry}")]
    flow = set().union(*(project.reach(path) for path in entries)) or project.files
    return Verdict(not any(_DIVIDES_ACCUMULATION.search(project.data(path)) for path in flow))


def _shards_with_fsdp(context: Context, finding: Finding, entries: str) -> Verdict:
    return Verdict(shards_with_fsdp(context.project, finding.span.path, entries))


QUESTIONS: dict[str, Callable[[Context, Finding, str], Verdict]] = {
    "environment-variable-unread": _variable_is_unread,
    "loader-is-reiterated": _loader_is_reiterated,
    "loader-feeds-training": _loader_feeds_training,
    "optimizer-trains-on-cuda": _optimizer_trains_on_cuda,
    "model-trains": _model_trains,
    "file-trains": _file_trains,
    "no-activation-checkpointing": _no_activation_checkpointing,
    "class-attends": _class_attends,
    "stands-in-training-loop": _stands_in_training_loop,
    "nothing-prunes-checkpoints": _nothing_prunes,
    "callee-saves": _callee_saves,
    "belongs-to-training": _belongs_to_training,
    "wrapped-model-trains": _wrapped_model_trains,
    "gradients-stay-attached": _gradients_stay_attached,
    "model-draws-buffers": _model_draws_buffers,
    "ddp-model-is-called": _ddp_model_is_called,
    "stands-outside-tests": _stands_outside_tests,
    "dataset-works-per-item": _dataset_works_per_item,
    "trains-on-cuda": _trains_on_cuda,
    "runs-many-ranks": _runs_many_ranks,
    "setting-feeds-loader-workers": _setting_feeds_loader_workers,
    "runs-in-every-step": _runs_in_every_step,
    "accumulation-is-not-divided": _accumulation_is_not_divided,
    "shards-with-fsdp": _shards_with_fsdp,
}
