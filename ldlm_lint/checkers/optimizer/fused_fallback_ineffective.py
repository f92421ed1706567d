"""fused-fallback-ineffective: handlers for an error that the constructor of a fused optimizer no longer raises."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ldlm_lint.concepts.optimizer_steps import OptimizerSteps
from ldlm_lint.concepts.optimizers import Optimizers
from ldlm_lint.edits.written_parts import written_argument
from ldlm_lint.model import Applicability, Consequence, Edit, Finding, Fix, Probe, Reference, Related, Rule
from ldlm_lint.vocabulary.fused_kernels import CHECKED_IN_STEP, WITH_FUSED, WITHOUT_FUSED

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode
    from ldlm_lint.program.handles import Call, Guard, Try

RULE = Rule(
    code="W7303",
    symbol="fused-fallback-ineffective",
    consequence=Consequence.CRASH,
    message="this `try` cannot catch a failure of `%(optimizer)s(fused=True)`: since torch 2.5 an unsupported device or "
    "type is found in the first `step()`, outside the `try`; decide by `torch.cuda.is_available()` instead",
    summary="`try: AdamW(..., fused=True)` with an `except` that builds the optimizer without it.",
    rationale="Up to torch 2.4 the constructor checked the devices and types of the parameters and raised. Since 2.5 "
    "it accepts them, and the first `step()` raises instead, outside the `try`: the fallback never runs.",
    cost="Training ends in its first step on a device or with a type that has no fused kernels, although the code was "
    "written to continue.",
    exceptions="Not reported: an `except TypeError` alone, for classes and releases that do not accept the argument; "
    "a `try` that also takes a step; a `target-torch` older than 2.5, whose constructor still raises.",
    versions="torch 2.5 to 2.13.",
    verification="`torch.optim.AdamW([torch.zeros(2, dtype=torch.complex64, requires_grad=True)], fused=True)` "
    "creates an optimizer, and its `step()` raises a RuntimeError once there is a gradient, also on a CPU.",
    references=(
        Reference("torch.optim.AdamW", "https://docs.pytorch.org/docs/stable/generated/torch.optim.AdamW.html"),
        Reference("torch.optim.Optimizer", "https://github.com/pytorch/pytorch/blob/main/torch/optim/optimizer.py"),
    ),
    reads=("py",),
    needs="a check of fused=True at the first step",
    triggers=(),
    applicability=Applicability.DISPLAY,
    fix_safety="Shown only: `fused=torch.cuda.is_available()` decides by the device, but the file does not show "
    "whether the parameters are on it and have a supported type.",
    probe=Probe("optimizer-construction", "the optimizer was made, and its first step raised"),
)

_RAISED = frozenset({"RuntimeError", "Exception", "BaseException"})
"""What the constructor raised for a device or a type, and its bases."""
_REASON = "the file does not show whether the parameters are on that device and of a supported type"


def find(code: ProjectCode) -> Iterator[Finding]:
    """The constructors in a ``try`` whose handler creates the optimizer again without ``fused``."""
    for call in code.calls(WITH_FUSED):
        newest = code.torch_of(call.module).newest
        is_checked_later = newest is None or newest >= CHECKED_IN_STEP
        made = code[Optimizers].only_of_torch(call, WITH_FUSED)
        if made and is_checked_later and call.argument("fused").only is True:
            handler = next((one for around in call.tries for one in around.handlers if _falls_back(code, call, around, one)), None)
            if handler is not None:
                args = {"optimizer": code[Optimizers].called(call, made)}
                related = [Related(handler.line_span, "the error never reaches this handler")]
                yield code.finding(RULE, call.span, args, related, fix=_fix(call), confidence=RULE.confidence)


def _falls_back(code: ProjectCode, call: Call, around: Try, handler: Guard) -> bool:
    """Whether a handler expects what the constructor raised, and no step that may raise it is in its ``try``."""
    again = [one for one in call.function.calls if handler in one.guards]
    return _catches(handler) and any(map(_creates_without, again)) and not any(map(code[OptimizerSteps].leads_to_one, around.calls))


def _catches(handler: Guard) -> bool:
    kinds = handler.test.operands if handler.test.is_tuple else [handler.test]
    return handler.test.kind == "none" or any(one.last_name in _RAISED for one in kinds)


def _creates_without(call: Call) -> bool:
    return not call.callee.interfaces.isdisjoint(WITH_FUSED.keys() | WITHOUT_FUSED.keys()) and call.argument("fused").only is not True


def _fix(call: Call) -> Fix | None:
    written = written_argument(call, "fused")
    edits = (Edit(written.span, "torch.cuda.is_available()"),) if written is not None else ()
    return Fix("set fused=torch.cuda.is_available()", edits, Applicability.DISPLAY, _REASON) if edits else None
