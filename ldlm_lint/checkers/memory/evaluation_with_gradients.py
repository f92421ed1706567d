"""evaluation-with-gradients: a model that runs for its results only while autograd records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ldlm_lint.concepts.evaluated_models import EvaluatedModels, EvaluatedRun
from ldlm_lint.concepts.predictions import Predictions
from ldlm_lint.edits.blocks import decorate, put_under
from ldlm_lint.edits.imports import ensure_import
from ldlm_lint.model import Applicability, Confidence, Consequence, Fix, Frequency, Probe, Reference, Related, Rule

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode
    from ldlm_lint.model import Finding

RULE = Rule(
    code="W7512",
    symbol="evaluation-with-gradients",
    frequency=Frequency.EPOCH,
    consequence=Consequence.MEMORY,
    message="`%(model)s` is evaluated with gradients on: each forward pass keeps its activations for a backward pass "
    "that never comes; run it under `torch.no_grad()`",
    summary="An evaluation, prediction or sampling loop that runs a model outside `torch.no_grad()`.",
    rationale="`model.eval()` changes dropout and batch normalization; it does not turn autograd off. While gradients "
    "are recorded, each forward pass keeps the activations that a backward pass would need, until the last tensor of "
    "its graph is gone. `.detach()` or `.item()` on the result comes too late: the activations were kept during the "
    "forward pass. If an output or a loss is collected over the loop, or fed back into the model, the graphs of all "
    "forward passes stay in memory together.",
    cost="Memory: all activations of a forward pass instead of those of one layer, so an evaluation needs smaller "
    "batches than necessary, or runs out of memory when training does not. Time: the bookkeeping of autograd.",
    exceptions="Evaluations that differentiate: saliency maps, adversarial attacks, guidance by a classifier, "
    "test-time training. They are not reported if a gradient is computed in the function or in a function it calls, "
    "or if the file differentiates what the function returns. A model whose parameters are all frozen records "
    "nothing. Lightning, ignite and the Hugging Face Trainer turn gradients off around their hooks.",
    versions="All versions of torch; `torch.inference_mode()` exists since 1.9.",
    verification="Print `output.requires_grad` or `loss.grad_fn` in the loop: with gradients off they are `False` and "
    "`None`. Compare `torch.cuda.max_memory_allocated()` of an evaluation before and after.",
    references=(
        Reference("torch.no_grad", "https://docs.pytorch.org/docs/stable/generated/torch.no_grad.html"),
        Reference(
            "Autograd mechanics: evaluation mode",
            "https://docs.pytorch.org/docs/stable/notes/autograd.html#evaluation-mode-nn-module-eval",
        ),
        Reference(
            "torch.inference_mode",
            "https://docs.pytorch.org/docs/stable/generated/torch.autograd.grad_mode.inference_mode.html",
        ),
    ),
    reads=("py",),
    triggers=(b"eval", b"model", b"net", b"encoder", b"decoder", b"backbone", b"generator", b"train(False)"),
    requires=((b"torch", b".cuda("),),
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: a caller that differentiates what the function returns, or a hook that needs gradients, no "
    "longer gets any; the computed values stay the same.",
    probe=Probe("evaluation-gradients", "the forward passes of an evaluation recorded gradients"),
)


_REASON = "code that differentiates what the evaluation returns no longer gets gradients"


def find(code: ProjectCode) -> Iterator[Finding]:
    """The evaluations whose runs of models nothing keeps from recording, and the predictions of files that train nothing."""
    evaluated, found = code[EvaluatedModels], set[object]()
    for runs in evaluated.all:
        found.update((run.call.function, run.name) for run in runs)
        run = runs[0]
        related = [] if run.shows is None else [Related(run.shows.line_span, "the model is switched to evaluation mode here")]
        related += [Related(one.call.line_span, "this call too") for one in runs[1:]]
        related += [] if run.caller is None else [Related(run.caller.line_span, "this call evaluates the model")]
        confidence = Confidence.HIGH if run.caller is None else Confidence.MEDIUM
        fix = _fix(code, run) if all(_place(one) == _place(run) for one in runs) else None
        yield code.finding(RULE, run.call.span, {"model": run.name}, related, fix=fix, confidence=confidence)
    for call in code[Predictions].all():
        name = code[Predictions].name_of(call)
        if (call.function, name) not in found and evaluated.records_for_nothing(call, call.callee, evaluated.still_loops(call)):
            yield code.finding(RULE, call.span, {"model": name})


def _place(run: EvaluatedRun) -> object:
    return run.place if run.loops or not (run.learns or run.call.function.is_module) else run.call


def _fix(code: ProjectCode, run: EvaluatedRun) -> Fix | None:
    """Turn gradients off for a function that never needs them, else for the loop or the statement of the evaluation."""
    source, function = code.source(run.call.module), run.call.function
    imported, name = ensure_import(source, "torch", "no_grad")
    if run.learns or function.is_module:
        loop = run.loops[-1] if run.loops and run.loops[-1].kind != "comp" else None
        edit = put_under(source, loop.line if loop is not None else run.call.line, run.call.last_line, [f"{name}()"])
        title = f"run the evaluation under {name}()"
    else:
        edit = decorate(source, function.line, f"{name}()")
        title = f"decorate {function.name} with {name}()"
    if edit is None:
        return None
    return Fix(title, tuple(sorted(one for one in (imported, edit) if one is not None)), Applicability.UNSAFE, _REASON)
