"""DataLoader: worker processes, keeping them, prefetching; and on CUDA copies from pinned memory."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from ldlm_lint.evidence.statistics import FEWEST_EPOCHS
from ldlm_lint.probe import machine
from ldlm_lint.probe.micro import profiles
from ldlm_lint.probe.micro.experiment import Context
from ldlm_lint.probe.micro.judging import arms_of, compared, seen
from ldlm_lint.probe.micro.sampling import Build, Timing, cuda_clock, sample, wall_clock

_ITEMS, _BATCH = 32, 4
# Sleeping simulates the disk and the GPU: neither uses the host's CPU. Some items take longer, as in all data.
_QUICK, _SLOW, _EVERY, _STEP = 0.0015, 0.008, 12, 0.006
_ROUNDS = 13
_WORKERS = 2
_STAND_IN = f"{_ITEMS} items that wait {1000 * _QUICK:g} to {1000 * _SLOW:g} ms, a step that waits {1000 * _STEP:g} ms"
_ANEW, _MAIN = "an epoch that starts 2 workers", "an epoch in the main process"
_KEPT, _FAR = "an epoch of 2 kept workers", "one of 2 kept workers that prefetch 4"
_ARMS: dict[str, dict[str, Any]] = {
    _ANEW: {"num_workers": _WORKERS},
    _MAIN: {},
    _KEPT: {"num_workers": _WORKERS, "persistent_workers": True},
    _FAR: {"num_workers": _WORKERS, "persistent_workers": True, "prefetch_factor": 4},
}
_CLAIMS = (
    (
        "dataloader-without-persistent-workers",
        "restarted workers take time at the beginning of each epoch",
        _ANEW,
        _KEPT,
    ),
    (
        "dataloader-in-main-process",
        "workers load while the training step runs, the main process does not",
        _MAIN,
        _KEPT,
    ),
    (
        "dataloader-without-prefetch",
        "prefetching four batches per worker hides slow items that two do not hide",
        _KEPT,
        _FAR,
    ),
)
_COPY_BYTES = 64 * 2**20


class Waiting:
    """A dataset whose items wait as for a disk, now and then for longer."""

    def __len__(self) -> int:
        return _ITEMS

    def __getitem__(self, index: int) -> int:
        time.sleep(_SLOW if index % _EVERY == 0 else _QUICK)
        return index


def run(context: Context) -> None:
    """Time paired epochs on the wall clock, which the claims are about; then the copies."""
    if context.device == "cuda":
        _copies(context)
    else:
        _no_copies(context)
    arms = arms_of(context, {name: _build(context, options) for name, options in _ARMS.items()}, _ANEW)
    timing = sample(arms, wall_clock, seed=context.seed, end=context.end, rounds=_ROUNDS, inner=1)
    context.observe("host", {"cpus": machine.cpus(), "workers": _WORKERS, "first_batch_seconds": _first(context)})
    for rule, claim, slow, fast in _CLAIMS:
        context.judge(_judged(context, rule, claim, timing, slow, fast))


def _judged(context: Context, rule: str, claim: str, timing: Timing, slow: str, fast: str) -> Any:
    return compared(context, rule, claim, timing, slow, fast, fewest=FEWEST_EPOCHS, stand_in=_STAND_IN)


def _build(context: Context, options: dict[str, Any]) -> Build:
    def build() -> Callable[[], None]:
        loader = context.torch.utils.data.DataLoader(Waiting(), batch_size=_BATCH, **options)

        def epoch() -> None:
            for _ in loader:
                time.sleep(_STEP)

        return epoch

    return build


def _first(context: Context) -> dict[str, float]:
    """Seconds until the first batch of a second epoch, with workers started again and kept."""
    found = {}
    for name in (_ANEW, _KEPT):
        if context.left < 1:
            break
        loader = context.torch.utils.data.DataLoader(Waiting(), batch_size=_BATCH, **_ARMS[name])
        for _ in loader:
            pass
        began = time.perf_counter()
        epoch = iter(loader)
        next(epoch)
        found[name] = round(time.perf_counter() - began, 4)
    return found


_PINNED = "copies to the device from pinned memory take less time than from pageable memory"
_BLOCKING = "a copy from pinned memory with non_blocking=True does not keep the host waiting for the kernels before it"


def _no_copies(context: Context) -> None:
    for rule, claim in (("dataloader-without-pin-memory", _PINNED), ("blocking-host-to-device-copy", _BLOCKING)):
        context.judge(seen(context, rule, claim, None, "pinned memory only matters for copies to a GPU, and this machine has none"))


def _copies(context: Context) -> None:
    """The copies are timed with a kernel in flight, as in training; rows of the profile name them."""
    torch = context.torch
    pageable = torch.empty(_COPY_BYTES // 4)
    pinned = pageable.pin_memory()
    square = torch.randn(4096, 4096, device=context.device)
    arms = {
        "pageable": lambda: lambda: pageable.to(context.device),
        "pinned": lambda: lambda: pinned.to(context.device),
    }
    rows = {
        name: profiles.counted(profiles.profiled(torch, build(), context.device), profiles.COPIES)
        for name, build in arms.items()
    }
    end = context.end - 0.7 * context.left
    timing = sample(arms_of(context, arms, "pageable"), cuda_clock(torch), seed=context.seed, end=end)
    rule = "dataloader-without-pin-memory"
    context.judge(compared(context, rule, _PINNED, timing, "pageable", "pinned", detail={"copies": rows}))
    host = _host_seconds(torch, square, pinned)
    waits = host["blocking"] > 2 * host["non_blocking"]
    said = f"while a kernel was running the host was blocked for {1000 * host['blocking']:.2f} ms by a blocking copy, "
    said += f"{1000 * host['non_blocking']:.2f} ms by one with non_blocking=True"
    context.judge(seen(context, "blocking-host-to-device-copy", _BLOCKING, waits or None, said))


def _host_seconds(torch: Any, square: Any, pinned: Any) -> dict[str, float]:
    """The median time that a copy call holds the host while kernels run."""
    from statistics import median

    found: dict[str, list[float]] = {"blocking": [], "non_blocking": []}
    for _ in range(15):
        for name, samples in found.items():
            torch.cuda.synchronize()
            for _ in range(8):
                square @ square
            began = time.perf_counter()
            pinned.to(square.device, non_blocking=name == "non_blocking")
            samples.append(time.perf_counter() - began)
    torch.cuda.synchronize()
    return {name: median(samples) for name, samples in found.items()}
