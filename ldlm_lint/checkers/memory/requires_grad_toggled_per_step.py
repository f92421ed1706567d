"""requires-grad-toggled-per-step: parameters that are frozen or unfrozen in a training step under DDP."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ldlm_lint.concepts.freezing import Freezing, Switch
from ldlm_lint.concepts.replicas import Replicas
from ldlm_lint.model import Confidence, Consequence, Finding, Frequency, Probe, Reference, Related, Rule
from ldlm_lint.wording import RUNS_IN_EVERY_STEP, quoted

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode

RULE = Rule(
    code="W7501",
    symbol="requires-grad-toggled-per-step",
    frequency=Frequency.STEP,
    consequence=Consequence.SLOW,
    message="`requires_grad` of %(target)s is set %(where)s, but DDP fixed which gradients it averages when it wrapped the "
    "model: only `find_unused_parameters=True`, which searches the graph in every step, allows that; freeze before wrapping",
    summary="Parameters that are frozen or unfrozen inside `forward` or a training step.",
    rationale="DDP registers the parameters that require gradients when it wraps the model. A parameter that is "
    "frozen later gets no gradient, and the next forward pass raises unless `find_unused_parameters=True` searches "
    "the graph in every iteration. A parameter that was frozen when the model was wrapped and is unfrozen later is "
    "never reduced, so the ranks silently drift apart. Ranks that draw different modes need different gradients, and "
    "`static_graph=True` allows no change at all.",
    cost="A forced `find_unused_parameters=True`, and the loop over the parameters: 1.3 ms per 1000 parameters and "
    "step (measured on CPU). Under `torch.compile` a changed `requires_grad` is a reason to compile again.",
    exceptions="Adversarial training that takes turns is not reported: each network is wrapped separately and frozen "
    "as a whole while the other one trains, which DDP supports; so are phases of one loop, if they switch whole wrapped "
    "models. Freezing once, before DDP wraps the model, is correct. Input tensors that need a gradient are fine.",
    versions="All versions of torch.",
    verification="Run with `TORCH_DISTRIBUTED_DEBUG=INFO`, which names parameters without gradients, and compare a "
    "checksum of the parameters over the ranks after a few steps.",
    references=(
        Reference(
            "DistributedDataParallel", "https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html"
        ),
        Reference("Distributed Data Parallel: internal design", "https://docs.pytorch.org/docs/stable/notes/ddp.html"),
    ),
    reads=("py",),
    triggers=(),
    confidence=Confidence.MEDIUM,
    probe=Probe(
        "trainable-parameters",
        "the set of parameters that require gradients changes between steps",
        whole_run=True,
    ),
)


def find(code: ProjectCode) -> Iterator[Finding]:
    """The switches that each step of a training on several ranks makes; those of one function and loop are one finding."""
    for first, *others in code[Freezing].switches:
        step = code[Freezing].step_of(first)
        if step is not None and _is_wrapped(code, first):
            args = {"target": quoted(first.text), "where": code.each_step(step, first.model.module)}
            related = [Related(one.span, "this sets `requires_grad` too") for one in others]
            related.append(Related(step.line_span, RUNS_IN_EVERY_STEP))
            yield code.finding(RULE, first.span, args, related, confidence=Confidence.MEDIUM)


def _is_wrapped(code: ProjectCode, switch: Switch) -> bool:
    """Whether DDP, or what wraps in its place, reduces gradients in a training that the switch belongs to."""
    wraps = code[Replicas].per_process
    return code.trainings.run_on_many_ranks(code.path(switch.model.module)) and any(one.may_run_with(switch.model) for one in wraps)
