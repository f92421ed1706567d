"""anomaly-detection-left-on: autograd's anomaly detection is on for a whole training."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ldlm_lint.concepts.lightning_trainers import TRAINERS
from ldlm_lint.concepts.steps import Steps
from ldlm_lint.edits.removed_calls import removal
from ldlm_lint.edits.written_parts import written_argument
from ldlm_lint.model import Applicability, Confidence, Consequence, Edit, Fix, Frequency, Probe, Reference, Rule

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode
    from ldlm_lint.model import Finding
    from ldlm_lint.program.handles import Call, Function, Guard

RULE = Rule(
    code="W7513",
    symbol="anomaly-detection-left-on",
    frequency=Frequency.STEP,
    consequence=Consequence.SLOW,
    message="`%(switch)s` records a stack trace for each operation and checks each gradient for NaN, which slows the whole "
    "training down: use it only to debug",
    summary="Autograd's anomaly detection is on for a whole training.",
    rationale="With anomaly detection on, each operation of the forward pass records the Python stack that called it, "
    "and each function of the backward pass checks its result for NaN, which waits for the GPU. That finds the "
    "operation that produced a NaN. torch's documentation says to enable it only for debugging, because it slows the "
    "program down.",
    cost="Time in every step: 11.5 times that of a step without it for a small model on CPU (measured). On a GPU also "
    "a wait at each function of the backward pass, which was not measured.",
    exceptions="A search for the origin of a NaN over a few steps. A switch under a condition, such as `if "
    "args.debug`, is not reported, nor one that the file switches off again.",
    versions="All versions of torch; `check_nan=False` still records the stacks.",
    verification="Check `torch.is_anomaly_enabled()` in the training loop, or compare the time of a few steps with "
    "and without it.",
    references=(
        Reference(
            "Automatic differentiation package: anomaly detection",
            "https://docs.pytorch.org/docs/stable/autograd.html#anomaly-detection",
        ),
        Reference("Lightning: Trainer", "https://lightning.ai/docs/pytorch/stable/common/trainer.html"),
    ),
    reads=("py",),
    triggers=(b"detect_anomaly",),
    applicability=Applicability.DISPLAY,
    fix_safety="Shown only: it was switched on in the code, and without it a NaN in a backward pass no longer raises, so training "
    "continues with it.",
    probe=Probe("anomaly-detection", "anomaly detection was on in all backward passes", whole_run=True),
)

_SWITCHES = frozenset(f"torch.autograd.{module}set_detect_anomaly" for module in ("", "anomaly_mode.", "grad_mode."))
_CONTEXTS = frozenset(f"torch.autograd.{module}detect_anomaly" for module in ("", "anomaly_mode."))
_REASON = "a NaN in a backward pass no longer raises"


def find(code: ProjectCode) -> Iterator[Finding]:
    """The calls that switch it on under no condition, in files that take part in a training."""
    found = [(call, "set_detect_anomaly(True)") for call in code.calls(_SWITCHES) if _is_on(call, "mode", 0) and not _is_switched_off(code, call)]
    found += [(call, "Trainer(detect_anomaly=True)") for call in code.calls(TRAINERS) if _is_on(call, "detect_anomaly")]
    found += [(call, "detect_anomaly()") for call in code.calls(_CONTEXTS) if any(guard.test == call for guard in code.guards_in(call.module))]
    for call, switch in found:
        path = code.path(call.module)
        belongs = code.trainings.train_in(path) if any(map(_asks_for_script, call.guards)) else code.trainings.belong_to(path)
        if belongs and _runs_always(code, call):
            yield code.finding(RULE, call.span, {"switch": switch}, fix=_fix(code, call), confidence=Confidence.HIGH)


def _is_on(call: Call, name: str, position: int | None = None) -> bool:
    return call.argument(name, position).only is True


def _is_switched_off(code: ProjectCode, call: Call) -> bool:
    """Whether a file switches the detection off again, or by a setting."""
    return any(not _is_on(other, "mode", 0) for other in code.calls(_SWITCHES) if other.module is call.module)


def _asks_for_script(guard: Guard) -> bool:
    return "__name__" in guard.test.words


def _runs_always(code: ProjectCode, call: Call) -> bool:
    """Whether calls that are under no condition lead from a script, or from what others call in a training, to a switch."""
    way = [call]
    for one in way:
        if not _is_conditional(code, one):
            if _begins(code, one.function):
                return True
            way += [above for above in one.function.callers if above not in way]
    return False


def _begins(code: ProjectCode, function: Function) -> bool:
    """Whether a function is the code of a module, or nothing shows who calls it, and it trains or frameworks do."""
    if function.is_module or function.callers:
        return function.is_module
    return function.is_special or function.is_hook or code[Steps].are_in(function) or code[Steps].lead_from(function)


def _is_conditional(code: ProjectCode, call: Call) -> bool:
    """Whether a call answers an error, or is under a test that the training is not under."""
    tests = (guard for guard in call.guards if guard.is_test and not _asks_for_script(guard))
    return call.is_in_handler or any(guard.kind == "if" or not _trains_under(code, guard, call.function) for guard in tests)


def _trains_under(code: ProjectCode, guard: Guard, function: Function) -> bool:
    return any(guard in call.guards for call in function.calls if code[Steps].is_leading(call))


def _fix(code: ProjectCode, call: Call) -> Fix | None:
    """Delete the statement if it is alone; otherwise replace True by False."""
    source = code.source(call.module)
    edit = removal(source, call.span, with_condition=False)
    if edit is not None and not edit.text:
        return Fix("remove anomaly detection", (edit,), Applicability.UNSAFE, _REASON)
    written = written_argument(call, "mode", 0) if call.callee.interfaces & _SWITCHES else written_argument(call, "detect_anomaly")
    if written is None or not written.is_constant:
        return None
    return Fix("switch anomaly detection off", (Edit(written.span, "False"),), Applicability.UNSAFE, _REASON)
