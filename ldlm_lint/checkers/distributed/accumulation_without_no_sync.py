"""accumulation-without-no-sync: loops that add up the gradients of a DDP model over micro-batches and reduce each of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ldlm_lint.concepts.accumulation import Accumulation, Accumulations
from ldlm_lint.concepts.losses import BackwardPasses
from ldlm_lint.concepts.reduction import Reduction
from ldlm_lint.concepts.replica_runs import DDP, ReplicaRuns
from ldlm_lint.edits.blocks import put_under
from ldlm_lint.edits.imports import ensure_import
from ldlm_lint.model import (
    Applicability,
    Confidence,
    Consequence,
    Finding,
    Fix,
    Frequency,
    Probe,
    Reference,
    Related,
    Rule,
)
from ldlm_lint.program.handles import Call, Guard
from ldlm_lint.wording import quoted

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode
    from ldlm_lint.program.handles import Expr, Loop

RULE = Rule(
    code="W7236",
    symbol="accumulation-without-no-sync",
    frequency=Frequency.STEP,
    consequence=Consequence.SLOW,
    message="DDP all-reduces the gradients of every micro-batch here, but the optimizer steps only after %(steps)s of "
    "them, so all but the last all-reduce are wasted: %(advice)s",
    summary="Gradient accumulation with a DDP model that all-reduces its gradients in every backward pass.",
    rationale="DDP averages gradients over the ranks in each backward pass. While gradients accumulate over "
    "micro-batches, only the last average is needed: the local gradients can be summed first and reduced once. "
    "`no_sync()` skips the all-reduce for every backward pass whose forward pass ran inside it.",
    cost="One all-reduce of all gradients per micro-batch instead of one per optimizer step. Hugging Face measured "
    "2.00 instead of 0.91 seconds per batch on two nodes, and 0.50 instead of 0.41 on one node with two T4 GPUs and "
    "four micro-batches; the slower the network, the higher the cost.",
    exceptions="Trainings that always use 1 micro-batch. Projects with `static_graph=True` are not reported: up to "
    "torch 2.13, `no_sync()` in the first iteration crashes there.",
    versions="torch 2.0 to 2.13.",
    verification="Count the `ncclAllReduce` kernels of one optimizer step in a profile, or time a step with and "
    "without `no_sync()`.",
    references=(
        Reference(
            "DistributedDataParallel.no_sync",
            "https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html",
        ),
        Reference(
            "accelerate: gradient synchronization", "https://huggingface.co/docs/accelerate/concept_guides/gradient_synchronization"
        ),
        Reference("pytorch#143580", "https://github.com/pytorch/pytorch/issues/143580"),
    ),
    reads=("py",),
    triggers=(),
    confidence=Confidence.MEDIUM,
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: gradients are summed before they are averaged instead of after, which rounds differently, and "
    "code between the backward pass and the optimizer step sees only its own rank's gradients. The fix uses the "
    "condition of the optimizer step, so that no step uses gradients that stayed local. It is offered for a forward and "
    "a backward pass in the block of their loop, under a condition that is known before both. No fix is offered if a "
    "backward pass can be skipped, if every micro-batch is clipped, or if a step can happen at another time (leftover "
    "micro-batches after the last batch, a second condition, two optimizers in turn).",
    probe=Probe(
        "all-reduces-per-step",
        "gradients were reduced in each of several backward passes between two optimizer steps",
    ),
)

_NO_SYNC = "run forward and backward of the others under `no_sync()`"
_ACCUMULATE = "pass `gradient_accumulation_steps` to `Accelerator`, and run forward and backward under `accelerator.accumulate(model)`"


_REASON = "gradients are summed before they are averaged, and stay local until the last micro-batch"
_ACCELERATOR = frozenset({"accelerate.Accelerator"})
_OTHER_ENGINES = ("deepspeed_plugin", "deepspeed_plugins", "fsdp_plugin", "megatron_lm_plugin", "parallelism_config", "cpu")


def find(code: ProjectCode) -> Iterator[Finding]:
    """The loops whose model is DDP's, by a wrapper or by Accelerate, and is reduced in each of their backward passes."""
    for one in code[Accumulations].every:
        if code.trainings.leave_at_one(code.path(one.call.module), one.count.last_name):
            continue
        receiver = one.backward.receiver
        if receiver is not None and receiver.made_by & _ACCELERATOR:
            if _is_reduced_by_accelerate(code, one):
                yield _finding(code, one, _ACCUMULATE, [])
        elif code[BackwardPasses].steps_itself(one.backward) or not (one.backward.positional or "loss" in dict(one.backward.keywords)):
            # Other engines get the loss as an argument, and reduce gradients on their own terms.
            wrappers = _reduced_by_ddp(code, one)
            if wrappers:
                yield _finding(code, one, _NO_SYNC, [Related(wrappers[0].line_span, "DDP wraps the model here")], _fix(code, one, wrappers))


def _finding(code: ProjectCode, one: Accumulation, advice: str, related: list[Related], fix: Fix | None = None) -> Finding:
    due = [Related(one.due.test.line_span, "the optimizer steps only here")] if one.due is not None else []
    args = {"steps": quoted(one.count.called_in(one.call.function)), "advice": advice}
    return code.finding(RULE, one.call.span, args, [*due, *related], fix=fix, confidence=RULE.confidence)


def _is_reduced_by_accelerate(code: ProjectCode, one: Accumulation) -> bool:
    """Whether Accelerate wraps the model in DDP, and nothing keeps its gradients local."""
    runs = code[ReplicaRuns].of(one.call)
    made = [call for call in code.calls(_ACCELERATOR) if call.may_run_with(one.call)]
    is_plain = all(call.argument(name).is_absent for call in made for name in _OTHER_ENGINES)
    is_sharded = code.trainings.are_sharded(code.path(one.call.module))
    return bool(runs.through) and is_plain and not is_sharded and not code[Reduction].is_kept_local(one.call)


def _reduced_by_ddp(code: ProjectCode, one: Accumulation) -> list[Call]:
    """Where DDP wraps the models that a loop runs, if it reduces them in each backward pass."""
    runs = code[ReplicaRuns].of(one.call)
    wrappers = [replica.wrapper for replica in runs.through if replica.wrapper.callee.interfaces & DDP]
    # An engine decides itself when it reduces; DDP wraps the model where that is not chosen.
    wrappers = [call for call in wrappers if all(call.excludes(engine) for engine in _engines(code, one))]
    if not wrappers or code[Reduction].is_taken_care_of(one.call, runs.through):
        return []
    return sorted(wrappers, key=lambda call: (call.module is not one.call.module, call.module.path, call.place))


def _engines(code: ProjectCode, one: Accumulation) -> list[Call]:
    """What makes DeepSpeed's engines in the same programs: their `no_sync` forbids steps."""
    return [call for call in code.calls({"deepspeed.initialize"}) if call.may_run_with(one.call)]


def _fix(code: ProjectCode, one: Accumulation, wrappers: list[Call]) -> Fix | None:
    """The statements from the forward to the backward pass under ``no_sync()``, if both are in the loop's own block, and
    no step can come at another time."""
    loop = next(iter(one.call.loops), None)
    passes = [call for call in loop.calls if code[BackwardPasses].lead_to_one(call)] if loop is not None else []
    if loop is None or one.due is None or not all(_is_never_skipped(call, loop, one.due.test) for call in passes) or _engines(code, one) or not code[Accumulations].uses_nothing_before(one):
        return None
    until = loop.calls[: loop.calls.index(one.call) + 1]
    runs = [(call, model) for call in until for model in _models(code, call, wrappers)]
    names = {model.called_in(one.call.function) for _, model in runs}
    source, test = code.source(one.call.module), one.due.condition
    forward = min((call for call, _ in runs), key=lambda call: call.place, default=one.call)
    known = {wrapped.replica.wrapper for _, model in runs for wrapped in code[ReplicaRuns].behind(model)}
    if len(names) != 1 or not known.issuperset(wrappers) or not code[Accumulations].is_decided_at(one, forward):
        return None
    name, is_sure = names.pop(), all(code[ReplicaRuns].is_always_wrapped(model) for _, model in runs)
    asked = test.called_in(one.call.function) if test.unnamed.place < forward.place else test.unnamed.text
    asked = f"({asked})" if test.unnamed.operator == "Or" and not is_sure and not one.due.interval.due else asked
    needed, nullcontext = ensure_import(source, "contextlib", "nullcontext")
    edit = put_under(source, forward.line, passes[-1].last_line, _context(asked, one.due.interval.due, name, f"{nullcontext}()", is_sure))
    if edit is None or "\n" in asked:
        return None
    reason = _REASON if is_sure else f"{_REASON}; `hasattr()` detects runs in which DDP does not wrap the model"
    edits = tuple(sorted(filter(None, (needed, edit))))
    return Fix(f"run all but the last micro-batch under {name}.no_sync()", edits, Applicability.UNSAFE, reason)


def _is_never_skipped(call: Call, loop: Loop, due: Guard | Expr) -> bool:
    """Whether each iteration of a loop makes a call, but for one that ends the program, or that is skipped as a whole, with the step."""
    shared = (*loop.guards, *(guard for guard in (due.around if isinstance(due, Guard) else ()) if guard != due and guard in loop.calls[0].guards))
    return not call.is_caught and all(guard in shared or guard.ends == "after raise" for guard in call.guards)


def _models(code: ProjectCode, call: Call, wrappers: list[Call]) -> list[Expr]:
    """The names of wrapped models that a call calls or gets."""
    named = [one for one in (call.callee, *call.arguments) if not isinstance(one, Call) or one.names]
    return [one for one in named if any(wrapped.replica.wrapper in wrappers for wrapped in code[ReplicaRuns].behind(one))]


def _context(test: str, due: bool, model: str, nullcontext: str, is_sure: bool) -> tuple[str, str, str]:
    """The context: a value, its condition, and the other value."""
    has_scope = f'hasattr({model}, "no_sync")'
    if due:
        return nullcontext, f"if {test}" if is_sure else f"if {test} or not {has_scope}", f"else {model}.no_sync()"
    return f"{model}.no_sync()", f"if {test}" if is_sure else f"if {has_scope} and {test}", f"else {nullcontext}"
