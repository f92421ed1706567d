"""parameters-frozen-after-wrap: a part of a model that is frozen or unfrozen after DDP has wrapped it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ldlm_lint.concepts.late_freezing import LateFreezing, LateSwitch
from ldlm_lint.model import Confidence, Consequence, Finding, Probe, Reference, Related, Rule
from ldlm_lint.wording import quoted

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode

RULE = Rule(
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
    references=(
        Reference(
            "DistributedDataParallel", "https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html"
        ),
        Reference("Distributed Data Parallel: internal design", "https://docs.pytorch.org/docs/stable/notes/ddp.html"),
    ),
    reads=("py",),
    triggers=(),
    confidence=Confidence.MEDIUM,
    probe=Probe("trainable-parameters", "parameters were frozen after DDP had wrapped them"),
)

_WAITS = "DDP still waits for its gradients, and the second step raises"
_DRIFTS = "DDP does not average its gradients, and the ranks drift apart"
_CHANGES = {True: "unfrozen", False: "frozen", None: "frozen or unfrozen"}


def find(code: ProjectCode) -> Iterator[Finding]:
    """The late switches of each wrapped model, those of one effect together."""
    for effect, found in ((_WAITS, code[LateFreezing].left_waiting), (_DRIFTS, code[LateFreezing].left_apart)):
        groups: dict[object, list[LateSwitch]] = {}
        for one in found:
            groups.setdefault((one.part.wrapper, one.function.module), []).append(one)
        for first, *others in groups.values():
            related = [Related(first.part.wrapper.line_span, "DDP wraps the model here")]
            related += [Related(one.switch.span, "this changes `requires_grad` too") for one in others]
            args = {"target": _described(first), "change": _CHANGES[first.switch.flag], "effect": effect}
            yield code.finding(RULE, first.switch.span, args, related, confidence=Confidence.MEDIUM)


def _described(one: LateSwitch) -> str:
    text = quoted(one.switch.models[0].called_in(one.function))
    return f"a part of {text}" if one.switch.is_of_some else text
