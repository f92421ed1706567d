"""Family 75: operations in a training step that make the host wait."""

from __future__ import annotations

from ldlm_lint.model import Applicability, Confidence, Consequence, Frequency, Probe, Reference, Rule

_TUNING = Reference(
    "Performance tuning guide: avoid unnecessary CPU-GPU synchronization",
    "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
)
_SEMANTICS = Reference(
    "CUDA semantics: asynchronous execution",
    "https://docs.pytorch.org/docs/stable/notes/cuda.html#asynchronous-execution",
)
_CACHE = Reference(
    "torch.cuda.empty_cache", "https://docs.pytorch.org/docs/stable/generated/torch.cuda.memory.empty_cache.html"
)

RUNS_IN_EVERY_STEP = "this runs in every step"
"""The note at the line that begins the step in which something runs."""
FOR_ALL = " until the GPU has finished all queued work, and the GPU then idles until new kernels arrive"
"""What a wait is for, the field ``wait`` of the message."""


def after_a_wait(line: int) -> str:
    """The same for a wait after another one without a launch in between."""
    return f", but only for work that line {line} already waits for (it matters once line {line} no longer waits)"


HOST_SYNC_IN_TRAINING_LOOP = Rule(
    code="W7507",
    symbol="host-sync-in-training-loop",
    frequency=Frequency.STEP,
    consequence=Consequence.SLOW,
    message="%(what)s makes Python wait %(where)s%(wait)s: %(advice)s",
    summary="A value is read from the device, or decides a branch on the host, in every training step.",
    rationale="The host launches kernels ahead of the device. `.item()`, `.cpu()`, `.tolist()`, `float(t)`, "
    "`print(t)` and an `if` on a tensor need a number that is still being computed: the host waits until the device "
    "has finished everything that was launched, and then the device waits until the host has launched more. This gap "
    "occurs in every step, and under data parallelism every rank waits for the slowest one. A sum that stays a tensor "
    "(`total += loss.detach()`) and is read once per logging interval costs no wait. A branch on the value can become "
    "`torch.where`, or a check of the last interval.",
    cost="The time that the device is idle while the host launches the next kernels: large if kernels are short or "
    "the host is busy, zero if the device is the bottleneck and the wait is at the end of the step anyway.",
    exceptions="A value that decides what is launched next and cannot be computed in another way (a GradScaler's own "
    "check, actions for an environment, lengths for packing); a step that takes seconds; training on a CPU. Not "
    "reported: reads under a logging interval, in an evaluation, after a check for NaN that was true, or under a "
    "`debug` condition.",
    versions="All versions of torch: this is how CUDA streams work.",
    verification="`torch.cuda.set_sync_debug_mode('warn')` around one step reports most of these places (not those of "
    "torch.distributed); in a profile they are long `cudaStreamSynchronize` or `cudaMemcpyAsync` calls. This needs a "
    "GPU, because nothing is asynchronous on a CPU.",
    references=(
        _TUNING,
        _SEMANTICS,
        Reference(
            "torch.cuda.set_sync_debug_mode",
            "https://docs.pytorch.org/docs/stable/generated/torch.cuda.set_sync_debug_mode.html",
        ),
    ),
    reads=("py",),
    triggers=(),
    confidence=Confidence.MEDIUM,
    applicability=Applicability.DISPLAY,
    fix_safety="Shown only: the code that reads the value decides how long it can stay on the device; a sum that "
    "becomes a tensor needs `.item()` where it is read.",
    probe=Probe("host-wait", "the call waits for the device in every step", device_bound=True),
)

CACHE_EMPTIED_IN_TRAINING_LOOP = Rule(
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
        _CACHE,
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

DEVICE_SYNCHRONIZED_IN_TRAINING_LOOP = Rule(
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
        _SEMANTICS,
        _TUNING,
    ),
    reads=("py",),
    triggers=(),
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: times that the host measures around it mean something else, and code that relies on its wait "
    "(another stream, a reused buffer, another library) has a race.",
    probe=Probe("host-wait", "the call waits for the device in every step", device_bound=True),
)

RULES = (HOST_SYNC_IN_TRAINING_LOOP, CACHE_EMPTIED_IN_TRAINING_LOOP, DEVICE_SYNCHRONIZED_IN_TRAINING_LOOP)
