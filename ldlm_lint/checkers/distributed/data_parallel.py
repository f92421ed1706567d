"""data-parallel: models that a training step runs on many GPUs from one process, by the wrapper class or the function."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ldlm_lint.concepts.evaluation import Evaluation
from ldlm_lint.concepts.replicas import IN_ONE_CALL, ONE_PROCESS, Replicas
from ldlm_lint.concepts.steps import Steps
from ldlm_lint.concepts.untrained import Untrained
from ldlm_lint.model import (
    Applicability,
    Confidence,
    Consequence,
    Edit,
    Finding,
    Fix,
    Frequency,
    Reference,
    Related,
    Rule,
)
from ldlm_lint.patterns import lazily
from ldlm_lint.vocabulary.models import names_evaluation

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode
    from ldlm_lint.program.handles import Call

RULE = Rule(
    code="W7235",
    symbol="data-parallel",
    frequency=Frequency.STEP,
    consequence=Consequence.SLOW,
    message="%(name)s drives all GPUs from one Python process and copies the model to them in every step, so the "
    "GPUs wait for that process: use `DistributedDataParallel` with one process per GPU",
    summary="`nn.DataParallel` in training.",
    rationale="In every forward pass the model is replicated from the first GPU to the others, the batch is "
    "scattered, and the outputs are gathered on the first GPU. Threads of one process do all this, and share Python's "
    "global interpreter lock. The first GPU also holds outputs, loss and optimizer, so it runs out of memory first. "
    "DistributedDataParallel keeps one process and one replica per GPU and overlaps the reduction of gradients with "
    "the backward pass; torch recommends it even on a single node.",
    cost="The copy of all parameters in each step, idle GPUs while the first one gathers, and uneven memory.",
    exceptions="Inference and evaluation, quick experiments on one machine. A program that also offers "
    "DistributedDataParallel is not reported, because DataParallel is then the user's choice; if DataParallel runs "
    "unless an option is given, it is reported at level info.",
    versions="torch 2.0 to 2.13.",
    verification="Watch the utilization and memory of all GPUs in `nvidia-smi dmon` during training. This needs GPUs.",
    references=(
        Reference("DataParallel", "https://docs.pytorch.org/docs/stable/generated/torch.nn.DataParallel.html"),
        Reference(
            "CUDA semantics: use DistributedDataParallel instead of DataParallel",
            "https://docs.pytorch.org/docs/stable/notes/cuda.html",
        ),
    ),
    reads=("py",),
    triggers=(),
    applicability=Applicability.DISPLAY,
    fix_safety="Shown only: DistributedDataParallel needs a process group, one process per GPU and a sampler that shards the data.",
)

_WRAPPER, _FUNCTION = "`nn.DataParallel`", "`nn.parallel.data_parallel`"
_REASON = "DistributedDataParallel needs a process group, one process per GPU and a sampler that splits the data"
# Files whose models have no known step are judged by names.
_MEASURES = lazily(r"(?:^|[/_])(?:eval\w*|test|valid\w*|infer\w*|demo|predict\w*|sampl\w*|fid|inception|lpips|metrics?)(?:[/_.]|$)")


def find(code: ProjectCode) -> Iterator[Finding]:
    """The calls of the function in a training step, and the wrappers whose models run in one."""
    for call in code.calls(IN_ONE_CALL):
        if code[Replicas].runs_in_step(call):
            yield from _found(code, call, _FUNCTION, None)
    for call in code.calls(ONE_PROCESS):
        if call.arguments and _may_train(code, call):
            edit = Edit(call.callee_span, "torch.nn.parallel.DistributedDataParallel")
            fix = Fix("wrap the model in DistributedDataParallel, with one process per GPU", (edit,), Applicability.DISPLAY, _REASON)
            yield from _found(code, call, _WRAPPER, fix)


def _may_train(code: ProjectCode, call: Call) -> bool:
    """Whether a step runs a wrapped model; if unknown, it counts as trained unless the code around it evaluates."""
    untrained, path = code[Untrained], code.path(call.module)
    if untrained.records_nothing(call):
        return False
    if code[Replicas].is_stepped(call):
        return True
    if code[Evaluation].is_set_by(call.function) or untrained.is_only_evaluated(call) or untrained.is_run_unrecorded(call):
        return False
    # A container of layers is not followed through every function that moves it; steps may be after a syntax error.
    has_steps = any(map(call.may_run_with, code[Steps].functions)) and not code.trainings.end_early(path)
    if (call.classes_of and has_steps) or any(names_evaluation(one.name) for one in call.function.around):
        return False
    return code.trainings.train_in(path) or not _MEASURES.search(call.module.path)


def _found(code: ProjectCode, call: Call, name: str, fix: Fix | None) -> Iterator[Finding]:
    """The finding for a program without a mode with one process per GPU; information if options choose between both."""
    own = call.module
    trainings = code.trainings.trainings_of(code.path(own))
    others = [(path, [one for one in code[Replicas].per_process if code.path(one.module) in (path, code.path(own))]) for path in trainings]
    confidence = RULE.confidence if call.is_as_written else Confidence.MEDIUM
    finding = code.finding(RULE, call.span, {"name": name}, fix=fix, confidence=confidence)
    if any(not found for _, found in others):
        yield finding
        return
    for path, found in others:
        if code[Replicas].is_default(call, found) and not code.trainings.start_many_ranks(path):
            related = Related(found[0].line_span, "with this, each GPU has its own process")
            yield finding._replace(related=(related,)).lowered("an option chooses one process for each GPU instead")
            return
