"""no-sync-outside-forward: `no_sync()` around a backward pass whose forward pass ran outside of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ldlm_lint.concepts.losses import BACKWARD, BackwardPasses
from ldlm_lint.concepts.optimizer_steps import OptimizerSteps
from ldlm_lint.concepts.reduction import Reduction
from ldlm_lint.concepts.replica_runs import ReplicaRuns
from ldlm_lint.edits.blocks import begin_earlier
from ldlm_lint.model import Applicability, Consequence, Finding, Fix, Frequency, Reference, Related, Rule
from ldlm_lint.program.handles import Call
from ldlm_lint.program.walks import Through
from ldlm_lint.vocabulary.wrappers import DDP

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode
    from ldlm_lint.program.handles import Expr, Guard

RULE = Rule(
    code="E7237",
    symbol="no-sync-outside-forward",
    frequency=Frequency.STEP,
    consequence=Consequence.SLOW,
    message="`no_sync()` around the backward pass alone has no effect, because DDP decides in the forward pass whether to "
    "synchronize: every micro-batch is still all-reduced; run the forward pass inside `no_sync()` too",
    summary="`no_sync()` that covers the backward pass but not the forward pass.",
    rationale="DDP prepares the reduction of gradients at the end of a forward pass that runs outside `no_sync()`, "
    "and the backward pass of that forward pass all-reduces them, wherever it runs. Gradients stay local only if the "
    "forward pass ran inside `no_sync()`.",
    cost="The all-reduces that the call was written to save. Hugging Face measured 2.13 seconds per batch with `no_sync()` around the "
    "backward pass alone, 2.00 without any, and 0.91 with the forward pass inside (two nodes, four micro-batches).",
    exceptions="FSDP, which decides in the backward pass, and custom engines. A function that runs the model and is "
    "called inside `no_sync()`.",
    versions="torch 2.0 to 2.13.",
    verification="Compare `.grad` on two ranks right after the backward pass, with different data: equal gradients "
    "were synchronized.",
    references=(
        Reference(
            "DistributedDataParallel.no_sync",
            "https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html",
        ),
        Reference(
            "accelerate: gradient synchronization", "https://huggingface.co/docs/accelerate/concept_guides/gradient_synchronization"
        ),
    ),
    reads=("py",),
    triggers=(),
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: gradients that were averaged over the ranks for each micro-batch then stay local until a "
    "synchronized one, which must come before the optimizer steps. Only shown if `no_sync()` is not under the "
    "condition of the optimizer step.",
)

_ACCELERATOR = "accelerate.Accelerator"
_REASON = "gradients of these micro-batches then stay local until one is synchronized"
_COMPARE = f"{_REASON}: compare the condition with that of every optimizer step first"


def find(code: ProjectCode) -> Iterator[Finding]:
    """The scopes around backward passes that run no forward pass of the scope's model, which ran before."""
    seen: set[Guard] = set()
    for backward in (call for call in code.calls_named(*BACKWARD) if call.receiver is not None):
        scopes = [(guard, call) for guard in backward.guards if guard.kind == "with" for call in _no_sync_calls(guard)]
        # Another scope around this one may hold the forward pass.
        if len({guard for guard, _ in scopes}) == 1 and scopes[0][0] not in seen:
            seen.add(scopes[0][0])
            yield from _found(code, backward, *scopes[0])


def _no_sync_calls(guard: Guard) -> list[Call]:
    """The calls of `no_sync` of a model, or of an Accelerator for one, that a ``with`` may enter."""
    entered = guard.test.origins(Through.NAMES | Through.CHOICES)
    return [one for one in entered if isinstance(one, Call) and one.called_name == "no_sync" and _model_of(one) is not None]


def _model_of(scope: Call) -> Expr | None:
    if scope.receiver is None or scope.keywords or len(scope.positional) > 1:
        return None
    if scope.positional:
        return scope.positional[0] if _ACCELERATOR in scope.receiver.made_by else None
    return scope.receiver


def _found(code: ProjectCode, backward: Call, guard: Guard, scope: Call) -> Iterator[Finding]:
    runs, model = code[ReplicaRuns], _model_of(scope)
    replicas = {one.replica for one in runs.behind(model) if not one.is_bare} if model is not None else set()
    calls = backward.function.calls
    inside = [call for call in calls if guard in call.guards]
    is_reduced = replicas and not code[Reduction].may_be_sharded(backward) and not any(map(backward.may_run_with, code.calls({"deepspeed.initialize"})))
    if not is_reduced or replicas & runs.run_by(inside).through:
        return
    before = [call for call in calls[: calls.index(inside[0])] if replicas & {one.replica for one in runs.behind(call.callee)}]
    forward = before[-1] if before else None
    if forward is None and not _gets_its_loss(code, backward):
        return
    related = [Related(forward.line_span, "the forward pass runs here")] if forward is not None else []
    wrappers = sorted((one.wrapper for one in replicas if one.wrapper.callee.interfaces & DDP), key=lambda call: (call.module.path, call.place))
    related += [Related(one.line_span, "DDP wraps the model here") for one in wrappers[:1]]
    fix = _fix(code, guard, scope, forward) if forward is not None else None
    yield code.finding(RULE, guard.test_span, {}, related, fix=fix, confidence=RULE.confidence)


def _gets_its_loss(code: ProjectCode, backward: Call) -> bool:
    """Whether the loss is an argument of the function, whose forward pass ran before it was called."""
    loss = code[BackwardPasses].loss(backward)
    parts = [loss] if loss is not None else []
    for part in parts:
        parts += [one for one in part.operands if one not in parts]
    return any(part.kind == "param" and part.name != "self" for part in parts)


def _fix(code: ProjectCode, guard: Guard, scope: Call, forward: Call) -> Fix | None:
    """Move the ``with`` line in front of the forward pass, if both are in one block and on their own lines."""
    edit = begin_earlier(code.source(scope.module), guard.line, forward.line)
    if edit is None:
        return None
    is_safe = _steps_when_synchronised(code, guard, scope, forward)
    level, reason = (Applicability.UNSAFE, _REASON) if is_safe else (Applicability.DISPLAY, _COMPARE)
    return Fix("run the forward pass inside the same context", (edit,), level, reason)


def _steps_when_synchronised(code: ProjectCode, guard: Guard, scope: Call, forward: Call) -> bool:
    """Whether every step is under the same test by which the scope leaves gradients local.

    Before the fix all gradients are synchronised; after it, a step at another time, such as after the last batch, would
    use gradients that differ between the ranks.
    """
    choice = guard.test.unnamed
    if choice.kind != "choice" or choice.test is None or not forward.loops:
        return False
    is_local = choice.ways[0].unnamed == scope
    steps = [call for call in forward.function.calls if code[OptimizerSteps].leads_to_one(call)]
    return bool(steps) and all(
        forward.loops[0] in step.loops and any(one.is_test and one.test.is_alike(choice.test) and one.holds is not is_local for one in step.guards)
        for step in steps
    )
