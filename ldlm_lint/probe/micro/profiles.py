"""The contents of a torch profile of one call: names of operators and kernels, and the peak of its memory."""

from __future__ import annotations

import contextlib
import gc
import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ldlm_lint.probe.native_log import without_warnings

# Of one whole step: torch's own fused optimizers and its multi-tensor ones, by CPU operator and by CUDA kernel.
FUSED = re.compile(r"aten::_fused_(adamw?|sgd|adagrad)_?|Fused(Adam|Sgd|Adagrad)MathFunctor")
FOREACH = re.compile(r"aten::_foreach_(?!add_$)\w+|multi_tensor_apply_kernel(?!.*Fused)")
ALL_REDUCE = re.compile(r"c10d::allreduce_")
# The functor of a fused optimizer is about 170 characters into its kernel's name.
_LONGEST_NAME = 400
COPIES = re.compile(r"Memcpy HtoD")


def profiled(torch: Any, call: Callable[[], Any], device: str, *, memory: bool = False) -> Any:
    """The finished profile of one call."""
    activities = [torch.profiler.ProfilerActivity.CPU]
    if device == "cuda":
        activities.append(torch.profiler.ProfilerActivity.CUDA)
        torch.cuda.synchronize()
    log_again = without_warnings(torch)
    try:
        with torch.profiler.profile(activities=activities, profile_memory=memory) as profile:
            call()
            if device == "cuda":
                torch.cuda.synchronize()
    finally:
        log_again()
    return profile


def counted(profile: Any, pattern: re.Pattern[str]) -> dict[str, int]:
    """The count of each operator or kernel with a matching name; template names are cut, but their distinguishing part
    is kept."""
    found = Counter[str]()
    for row in profile.key_averages():
        if pattern.search(row.key):
            found[row.key[:_LONGEST_NAME]] += row.count
    return dict(found)


def peak_bytes(torch: Any, call: Callable[[], Any], device: str) -> int | None:
    """The most bytes that one call held at a time beyond what was held before; None if this torch does not provide it.

    On a CPU it is the prefix sum of the profiler's allocations, which is exact, unlike the process's size: the C
    allocator keeps freed memory. On CUDA the allocator counts itself.
    """
    if device == "cuda":
        gc.collect()
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        call()
        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated() - before
    changes = _changes(torch, call, device)
    return max(itertools.accumulate(changes, initial=0)) if changes else None


def _changes(torch: Any, call: Callable[[], Any], device: str) -> list[int]:
    """The bytes of each allocation (positive) and release (negative) of a call, in the order of time."""
    # Garbage of earlier experiments is collected now, not inside the window, where it would be subtracted.
    gc.collect()
    with _uncollected():
        profile = profiled(torch, call, device, memory=True)
    results = getattr(getattr(profile, "profiler", None), "kineto_results", None)
    events: Iterable[Any] = results.events() if results is not None else ()
    found = [(_moment(one), one.nbytes()) for one in events if one.name() == "[memory]"]
    return [size for _, size in sorted(found, key=lambda one: one[0])]


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _moment(event: Any) -> int:
    # start_us until torch 2.3, start_ns since.
    return event.start_ns() if hasattr(event, "start_ns") else event.start_us()
