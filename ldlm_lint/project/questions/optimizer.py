"""The questions about optimizers."""

from __future__ import annotations

from collections.abc import Iterable

from ldlm_lint.model import Finding, Related
from ldlm_lint.project.engines import hands_to_deepspeed, makes_optimizer, names_deepspeed
from ldlm_lint.project.lightning_trainers import lightning_trainers, may_clip_mixed_precision
from ldlm_lint.project.questions.base import Context, Question, Verdict
from ldlm_lint.project.training import is_tutorial

_STAYS_SCALED = (
    "with fused, scaler.step() removes the scale only inside the kernel, so %s:%d would read scaled gradients; "
    "first call scaler.unscale_(optimizer) before scaler.step() in line %d"
)


def _optimizer_trains_on_cuda(context: Context, finding: Finding, subject: str) -> Verdict:
    project, path = context.project, finding.span.path
    if project.is_test(path) or is_tutorial(project, path) or b"torch_xla" in project.data(path):
        return Verdict(False)
    if _tries_out(context, path, subject.rpartition(" ")[2]):
        return Verdict(False)
    trainers = project.trainers_of(path) or context.view.trainers_calling(path, subject.rpartition(" ")[2])
    for trainer in trainers:
        engine = project.skim(trainer).engine or project.skim(path).engine
        if engine or not project.any_skim(project.reach(trainer), "cuda"):
            continue
        # The launching programs of a file are determined only if needed: that reads all launches.
        described = any(map(makes_optimizer, context.engines.configs.values()))
        if not (described and any(map(makes_optimizer, context.engines.of(trainer)))) and not _runs_under_deepspeed(context, trainer):
            clipped = _is_clipped_by_lightning(context, path, subject.rpartition(" ")[2])
            return Verdict(False) if clipped else fusable_in(context, trainers)
    return Verdict(False)


def fusable_in(context: Context, trainers: Iterable[str]) -> Verdict:
    """The finding is confirmed; its fix is only shown if a training reads gradients after a scaler's step: a fused
    optimizer leaves them scaled."""
    read = next((found for one in trainers if (found := context.scaled_gradients.read_in(one)) is not None), None)
    if read is None:
        return Verdict(True)
    name = read.path.rpartition("/")[2]
    related = Related(context.line_span(read.path, read.line), "gradients are read here, after the scaler's step")
    return Verdict(True, (related,), shown=_STAYS_SCALED % (name, read.line, read.step))


def _runs_under_deepspeed(context: Context, trainer: str) -> bool:
    """Whether Accelerate passes a training to DeepSpeed, by all its known launches; without launches, by all Accelerate
    files."""
    if b"Accelerator" not in context.project.data(trainer):
        return False
    if programs := list(context.launches.running(trainer)):
        return all(hands_to_deepspeed(context.project, one) for one in programs)
    files = [one for one in context.engines.configs.values() if one.get("distributed_type") is not None]
    return bool(files) and all(map(names_deepspeed, files))


def _is_clipped_by_lightning(context: Context, path: str, position: str) -> bool:
    """Whether an optimizer is created for Lightning's ``configure_optimizers``, and a Trainer may clip in mixed
    precision: Lightning refuses that with a fused one."""
    project = context.project
    scope = next((one.scope for one in project.flow(path).calls if one.position == position), "")
    callers = context.calls.callers(path, scope) if scope else ()
    if not any(call.scope.rpartition(".")[2] == "configure_optimizers" for _, call in callers):
        return False
    return any(may_clip_mixed_precision(call) for _, _, call in lightning_trainers(project, path))


def _tries_out(context: Context, path: str, position: str) -> bool:
    """Whether the statements of a module create an optimizer without training: plotting a schedule, a self-test."""
    calls = context.project.flow(path).calls
    return any(one.scope == "" and one.position == position for one in calls) and not context.runs_training(path)


QUESTIONS: dict[str, Question] = {
    "optimizer-trains-on-cuda": _optimizer_trains_on_cuda,
}
