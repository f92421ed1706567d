"""cache-emptied-in-training-loop: calls that empty the allocator's cache in training code, also through a helper of the project of that name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ldlm_lint.checkers.stalled_steps import removed, stalled
from ldlm_lint.concepts.roles import Roles
from ldlm_lint.concepts.stalls import Stalls
from ldlm_lint.model import Applicability, Consequence, Frequency, Probe, Reference, Rule
from ldlm_lint.vocabulary.accelerators import EMPTIES, EMPTY

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode
    from ldlm_lint.model import Finding
    from ldlm_lint.program.handles import Call


RULE = Rule(
    code="W7508",
    symbol="cache-emptied-in-training-loop",
    frequency=Frequency.STEP,
    consequence=Consequence.SLOW,
    message="%(call)s returns cached memory to the driver %(where)s, and the next step has to allocate it again: both make "
    "Python wait for the GPU; remove the call",
    summary="The caching allocator is emptied in every training step.",
    rationale="`empty_cache()` returns cached blocks to the driver. It waits for the device, and the next step "
    "allocates the same blocks again with `cudaMalloc`, which waits once more. PyTorch itself gains no memory: it can "
    "use a cached block anyway. Only other processes on the same device gain.",
    cost="Hugging Face says about 10 % slower for its option that does this in every step.",
    exceptions="Another process needs the memory between steps, or fragmentation really causes out-of-memory errors: "
    "then try `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`, or empty the cache once every few hundred steps. "
    "Not reported: calls under an interval, in an `except`, or under a flag that asks for them.",
    versions="All versions of torch; also the `torch.xpu`, `torch.mps` and `torch.npu` calls of that name.",
    verification="`torch.cuda.memory_stats()['num_device_alloc']` stops growing after the first steps once the call "
    "is gone. This needs a GPU: on a CPU the allocator has no such cache.",
    references=(
        Reference(
            "torch.cuda.empty_cache", "https://docs.pytorch.org/docs/stable/generated/torch.cuda.memory.empty_cache.html"
        ),
        Reference(
            "CUDA semantics: memory management",
            "https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-memory-management",
        ),
        Reference(
            "transformers: torch_empty_cache_steps", "https://huggingface.co/docs/transformers/main_classes/trainer"
        ),
    ),
    reads=("py",),
    triggers=(),
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: a run that only just fits in memory can run out of it if blocks of other sizes stay cached.",
    probe=Probe("emptied-caches", "the allocator's cache is emptied in every step", device_bound=True),
)

_REASON = "a run that only just fits in memory can run out of it when blocks of other sizes stay cached"


def find(code: ProjectCode) -> Iterator[Finding]:
    """The calls that a step makes each time; in a file without training they serve offloading or another phase."""
    direct = list(code.calls(EMPTIES))
    for call, way in code[Stalls].unwanted([*direct, *_by_helpers(code, direct)]):
        if code[Roles].trains(call.module):
            yield from stalled(code, RULE, call, way, removed(code, call, _REASON))


def _by_helpers(code: ProjectCode, direct: list[Call]) -> Iterator[Call]:
    """The calls of functions of that name that empty the cache, such as one that chooses among kinds of devices."""
    helpers = {call.function for call in direct}
    for call in code.calls_named(EMPTY):
        if call not in direct and not call.arguments and not helpers.isdisjoint(call.targets):
            yield call
