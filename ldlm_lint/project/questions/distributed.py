"""The questions about process groups, DDP and the environment."""

from __future__ import annotations

import re

from ldlm_lint.code.table import line_of
from ldlm_lint.concepts.reduction import Reduction
from ldlm_lint.concepts.replica_runs import ReplicaRuns
from ldlm_lint.model import Finding, Related
from ldlm_lint.patterns import lazily
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.gradients import asks_for_gradient
from ldlm_lint.project.arms import stands_in_other_arm
from ldlm_lint.project.buffers import random_buffer, seeds_all_ranks_alike
from ldlm_lint.project.known_callers import starting_files
from ldlm_lint.project.optional_settings import is_one_by_default
from ldlm_lint.project.questions.base import Context, Question, Verdict
from ldlm_lint.project.sharding import shards_with_fsdp
from ldlm_lint.project.traits import Trait
from ldlm_lint.project.wrapped import Wrap
from ldlm_lint.python.skim import without_comments
from ldlm_lint.python.slots import Slot
from ldlm_lint.source import Kind

_DETACHES_GRADIENTS = Trait(
    re.compile(rb"\.detach_\(|dist_autograd|distributed\.autograd"),
    (b".detach_(", b"dist_autograd", b"distributed.autograd"),
)
_AUTOGRAD_OF_RANKS = lazily(rb"dist_autograd|distributed\.autograd")
_SYNCS_ITSELF = lazily(
    rb"no_sync|require_backward_grad_sync|set_requires_gradient_sync|static_graph|accelerator\.\w|\bAccelerator\("
    rb"|fully_shard|FullyShardedDataParallel"
)
_MAKES_ENGINE = lazily(rb"deepspeed\.initialize")
_DEEPSPEED = re.compile(rb"deepspeed", re.I)
# `$NAME`, `${NAME:-5}` in a line that does more than print it.
_EXPANSION = rb"^(?![ \t]*(?:#|echo\b|printf\b))[^\n]*\$\{?%s(?!\w)"


def _variable_is_unread(context: Context, finding: Finding, name: str) -> Verdict:
    """No Python of the project reads the variable, nor does a script in the same shell or one that may get a
    container's environment."""
    project, path = context.project, finding.span.path
    if context.reads_variable(name):
        return Verdict(False)
    if project.others.get(path) in (None, Kind.SHELL):
        return Verdict(path not in project.others or not context.sourcing.reads(path, name))
    expansion = re.compile(_EXPANSION % re.escape(name).encode(), re.M)
    return Verdict(not any(expansion.search(project.data(one)) for one in project.others if one != path))


def _wrapped_model_trains(context: Context, finding: Finding, scope: str) -> Verdict:
    """The file computes gradients, directly or through callees, or an importing file does.

    If all callers of the function are known, only the calling files count.
    """
    project, path = context.project, finding.span.path
    if project.is_test(path):
        return Verdict(False)
    starts = starting_files(context.calls, path, scope)
    near = {one for start in starts for one in (start, *project.trainers_of(start))}
    return Verdict(any(context.runs_training(one) for one in sorted(near)))


def _gradients_stay_attached(context: Context, finding: Finding, _subject: str) -> Verdict:
    """Nothing near the training detaches gradients in place, which a view does not allow, or stores them elsewhere."""
    project, path = context.project, finding.span.path
    near = project.around(path) & project.showing(_DETACHES_GRADIENTS)
    return Verdict(not any(_detaches(context, one) for one in near))


def _detaches(context: Context, path: str) -> bool:
    """Whether a file may detach gradients of parameters in place; those of an input that requires gradients do not
    concern DDP."""
    module = context.view.module(path)
    if module is None or _AUTOGRAD_OF_RANKS.search(context.project.data(path)):
        return True
    functions = [module.nodes[module.nodes[one][1]] for one in module.table.named.get("detach_", ())]
    receivers = [module.plain(one[1]) for one in functions if one[0] == "attr"]
    gradients = [one for one in receivers if one[0] == "attr" and one[2] == "grad"]
    return any(not asks_for_gradient(module, one[1]) for one in gradients)


def _model_draws_buffers(context: Context, finding: Finding, names: str) -> Verdict:
    project, path = context.project, finding.span.path
    found = random_buffer(project, path, names.split())
    if found is None or seeds_all_ranks_alike(project, path):
        return Verdict(False)
    model, buffer = found
    problem = (
        "`broadcast_buffers=False` also skips the broadcast at construction since torch 2.1: each rank keeps the random values that it "
        f"drew for `{model}.{buffer}`; leave `broadcast_buffers` at its default"
    )
    return Verdict(True, args=(("problem", problem),))


def _ddp_model_is_called(context: Context, finding: Finding, slots: str) -> Verdict:
    """One of the variables that a loop calls is a DDP model, and no code on its way handles the synchronisation."""
    project, path = context.project, finding.span.path
    if project.is_test(path):
        return Verdict(False)
    # The index of a slot is an expression, and may contain either sign.
    for parts in (slot.split(":", 3) for slot in slots.split(";")):
        wrap = context.wraps.of(path, Slot(*parts)) if len(parts) == 4 else None
        if wrap is None or _runs_past(context, finding, wrap):
            continue
        near = [without_comments(project.data(one)) for one in wrap.files | project.imported_by(path) | {path}]
        module = context.view.module(path)
        if module is None:
            # No part of a training that is followed: its words have to do.
            holds = not any(map(_SYNCS_ITSELF.search, near))
        else:
            backward = context.view.call_at(module, context.view.place_at(module, finding.span.start))
            models = frozenset() if backward is None else context.view[Reduction].models_of(module.base | backward)
            holds = not context.view[Reduction].is_taken_care_of(module, models)
        engine = any(map(_MAKES_ENGINE.search, near))
        if holds and engine:
            # An engine controls synchronisation itself, and DDP wraps other models; its `no_sync` forbids steps.
            holds = stands_in_other_arm(project.data(wrap.path), wrap.line, _DEEPSPEED)
        shown = (Related(context.line_span(wrap.path, wrap.line), "DDP wraps the model here"),)
        return Verdict(holds, shown, withdraws=engine)
    return Verdict(False)


def _runs_past(context: Context, finding: Finding, wrap: Wrap) -> bool:
    """Whether the loop of a backward pass runs the inner module of a wrapper: nothing is reduced there."""
    module, home = context.view.module(finding.span.path), context.view.module(wrap.path)
    if module is None or home is None:
        return False
    backward = context.view.call_at(module, context.view.place_at(module, finding.span.start))
    runs = context.view[ReplicaRuns].of(module.base | backward) if backward is not None else None
    return runs is not None and any(
        context.view.program.module_of(one) is home and line_of(home.table.sites[one & MASK].place) == wrap.line
        for one in runs.past - runs.through
    )


def _prepared_model_is_reduced(context: Context, finding: Finding, _subject: str) -> Verdict:
    """The loop of an Accelerator's backward pass runs its model through the wrapper, and nothing keeps gradients local."""
    module = context.view.module(finding.span.path)
    backward = None if module is None else context.view.call_at(module, context.view.place_at(module, finding.span.start))
    if module is None or backward is None:
        return Verdict(True)
    runs = context.view[ReplicaRuns].of(module.base | backward)
    return Verdict(not (runs.past and not runs.through) and not context.view[Reduction].keeps_local(module))


def _accumulation_is_not_divided(context: Context, _finding: Finding, entry: str) -> Verdict:
    """No code of a launched file, or of the project if that is unknown, divides the steps by the world size."""
    return Verdict(not context.divides_accumulation(entry))


def _shards_with_fsdp(context: Context, finding: Finding, entries: str) -> Verdict:
    return Verdict(shards_with_fsdp(context.project, finding.span.path, entries))


def _launches_accumulate(context: Context, finding: Finding, name: str) -> Verdict:
    """Not all launches of the training leave the micro-batches of a step at the option's default of 1."""
    launched = name and context.launches.running(finding.span.path)
    return Verdict(not launched or not is_one_by_default(context.project, name))


QUESTIONS: dict[str, Question] = {
    "launches-accumulate": _launches_accumulate,
    "environment-variable-unread": _variable_is_unread,
    "wrapped-model-trains": _wrapped_model_trains,
    "gradients-stay-attached": _gradients_stay_attached,
    "model-draws-buffers": _model_draws_buffers,
    "prepared-model-is-reduced": _prepared_model_is_reduced,
    "ddp-model-is-called": _ddp_model_is_called,
    "accumulation-is-not-divided": _accumulation_is_not_divided,
    "shards-with-fsdp": _shards_with_fsdp,
}
