"""device-synchronized-in-training-loop: calls that wait for the whole device, in all code that a training step runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ldlm_lint.checkers.stalled_steps import removed, stalled
from ldlm_lint.concepts.measuring import Measuring
from ldlm_lint.concepts.stalls import Stalls
from ldlm_lint.model import Applicability, Consequence, Frequency, Probe, Reference, Rule
from ldlm_lint.vocabulary.accelerators import SYNCHRONIZES

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode
    from ldlm_lint.model import Finding
    from ldlm_lint.program.handles import Call


RULE = Rule(
    code="W7509",
    symbol="device-synchronized-in-training-loop",
    frequency=Frequency.STEP,
    consequence=Consequence.SLOW,
    message="%(call)s makes Python wait %(where)s until the GPU has no work left, and the GPU then idles until new kernels "
    "arrive: remove the call",
    summary="The host waits for the whole device in every training step.",
    rationale="Work on one stream runs in order, and reading a value waits by itself: a training step needs no "
    "explicit synchronization to be correct. With one, the host launches nothing while the device works, and the "
    "device is idle while the host launches the next step. The call is usually left over from a measurement.",
    cost="The time to launch the first kernels of a step, in every step.",
    exceptions="Measurements, which need the wait: put them under a flag or an interval, or use `torch.cuda.Event`. A "
    "wait right next to the reading of a clock is not reported. Work on several streams or by other libraries needs "
    "an order; `wait_stream` gives one without stopping the host.",
    versions="All versions of torch; also the `torch.xpu`, `torch.mps` and `torch.npu` calls of that name.",
    verification="A profile shows `cudaDeviceSynchronize` and after it a gap without kernels in every step; without "
    "the call the gap is gone. This needs a GPU, because nothing is asynchronous on a CPU.",
    references=(
        Reference(
            "torch.cuda.synchronize", "https://docs.pytorch.org/docs/stable/generated/torch.cuda.synchronize.html"
        ),
        Reference(
            "CUDA semantics: asynchronous execution",
            "https://docs.pytorch.org/docs/stable/notes/cuda.html#asynchronous-execution",
        ),
        Reference(
            "Performance tuning guide: avoid unnecessary CPU-GPU synchronization",
            "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
        ),
    ),
    reads=("py",),
    triggers=(),
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: times that the host measures around it mean something else, and code that relies on its wait "
    "(another stream, a reused buffer, another library) has a race.",
    probe=Probe("host-wait", "the call waits for the device in every step", device_bound=True),
)

_REASON = (
    "times measured around the call mean something else, and code that relies on the wait (another stream, a reused buffer, "
    "another library) races"
)


def find(code: ProjectCode) -> Iterator[Finding]:
    """The calls that every step makes and that do not serve a measurement."""
    for call, way in code[Stalls].unwanted(code.calls(SYNCHRONIZES)):
        if not _measures(code, call, bool(way)) and not any(_measures(code, one, True) for one in way):
            yield from stalled(code, RULE, call, way, removed(code, call, _REASON))


def _measures(code: ProjectCode, call: Call, in_helper: bool) -> bool:
    """Whether a call serves a measurement: between clock reads, next to events, or around a context manager's body."""
    if call.function.is_generator or call.function.name in ("__enter__", "__exit__") or code[Measuring].is_measured(call):
        return True
    return in_helper and any(map(code[Measuring].reads_clock, call.function.calls))
