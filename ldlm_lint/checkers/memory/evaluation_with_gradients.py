"""evaluation-with-gradients in programs that load weights and do not train, and in loops between trainings; the evaluations
of a file that are to be seen there alone, `ldlm_lint.checkers.evaluation` finds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ldlm_lint.concepts.predictions import Predictions
from ldlm_lint.model import Applicability, Claim, Consequence, Frequency, Probe, Reference, Rule

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


def find(code: ProjectCode) -> Iterator[Finding]:
    """The runs of models for their results only, of which each is checked against all callers."""
    for call in code[Predictions].all():
        name = code[Predictions].name_of(call)
        scope = ".".join(one.name for one in reversed(call.function.enclosing))
        lines = ",".join(str(loop.line) for loop in call.loops)
        claim = Claim("evaluation-records-gradients", "|".join((scope, lines, "", "", name, "")))
        yield code.finding(RULE, call.span, {"model": name}, claims=(claim,))
