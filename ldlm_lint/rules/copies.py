"""Family 71: copies between host and device."""

from __future__ import annotations

from ldlm_lint.model import Applicability, Confidence, Consequence, Frequency, Probe, Reference, Rule
from ldlm_lint.rules.measured import H100

_PINNED = Reference(
    "CUDA semantics: pinned memory buffers", "https://docs.pytorch.org/docs/stable/notes/cuda.html#use-pinned-memory-buffers"
)
_GUIDE = Reference(
    "A guide on good usage of non_blocking and pin_memory()",
    "https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html",
)

BLOCKING_COPY = Rule(
    code="R7109",
    symbol="blocking-host-to-device-copy",
    frequency=Frequency.STEP,
    consequence=Consequence.SLOW,
    message="%(copies)s copies a batch to the GPU without `non_blocking=True`, although the loader at %(loader)s pins its "
    "memory: Python waits for the copy in every step; set `non_blocking=True`",
    summary="A batch of a loader with `pin_memory=True` that is copied to the GPU without `non_blocking=True`.",
    rationale="Pinned memory makes an asynchronous copy possible, `non_blocking=True` makes it happen. Without it "
    "`batch.to(device)` waits on the host until the copy is done, and in that time the host cannot queue the kernels "
    "of the step.",
    cost="The time of the copies on the host, in every step; it matters if the host is the bottleneck and batches are "
    "large. "
    "On an H100, next to a running kernel, the host was held for 22.3 ms by a blocking copy and for 0.07 ms by one with `non_blocking=True`.",
    exceptions="A batch that the host changes in place after the copy began, training on a CPU, and steps in which "
    "the host has spare time.",
    versions="All versions.",
    verification="Compare the gap between the copy and the first kernel of the step in a profile, with and without "
    "the option. This needs a GPU.",
    references=(_PINNED, _GUIDE, H100),
    reads=("py",),
    triggers=(b".to(", b".cuda("),
    requires=((b"backward", b"zero_grad", b"step("),),
    confidence=Confidence.MEDIUM,
    default=False,
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: the values are the same on the GPU, but host code that writes into the pinned batch right after the copy "
    "began would change what is copied.",
    probe=Probe(
        "host-to-device-copies",
        "pinned batches were copied to the device while the host waited",
        device_bound=True,
        experiment="dataloader",
    ),
)

RULES: tuple[Rule, ...] = (BLOCKING_COPY,)
