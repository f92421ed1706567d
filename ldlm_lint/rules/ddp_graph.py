"""Family 72: constraints of DDP on a model and its parameters."""

from __future__ import annotations

from ldlm_lint.model import Confidence, Consequence, Probe, Reference, Rule

_DDP = Reference(
    "DistributedDataParallel",
    "https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html",
)
_DESIGN = Reference("Distributed Data Parallel: internal design", "https://docs.pytorch.org/docs/stable/notes/ddp.html")

PARAMETERS_FROZEN_AFTER_WRAP = Rule(
    code="E7232",
    symbol="parameters-frozen-after-wrap",
    consequence=Consequence.CRASH,
    message="%(target)s is %(change)s after DDP wrapped the model: %(effect)s; do it before wrapping, or wrap the model again",
    summary="Part of a model is frozen or unfrozen after DDP has wrapped it.",
    rationale="DDP registers the parameters that require gradients when it wraps a model, and does not check again. A "
    "parameter that is frozen later gets no gradient, although DDP waits for it. A parameter that is unfrozen later "
    "has no hook, so each rank updates it with its own gradient.",
    cost="Frozen later: `RuntimeError: Expected to have finished reduction in the prior iteration` in the second step. Unfrozen later: no "
    "error, and parameters that drift apart between the ranks.",
    exceptions="Freezing a whole network, such as a teacher, or the adversary that does not train in this step. "
    "Freezing with `find_unused_parameters=True`, or before the first forward pass with `static_graph=True`. Changes "
    "in every step are reported as requires-grad-toggled-per-step.",
    versions="torch 2.0 to 2.13.",
    verification="Compare a checksum of the parameters over the ranks after a few steps; two processes with gloo on a "
    "CPU are enough.",
    references=(_DDP, _DESIGN),
    reads=("py",),
    triggers=(b"requires_grad", b"freez", b"set_trainable", b"toggle_grad"),
    confidence=Confidence.MEDIUM,
    probe=Probe("trainable-parameters", "parameters were frozen after DDP had wrapped them"),
)

RULES = (PARAMETERS_FROZEN_AFTER_WRAP,)
