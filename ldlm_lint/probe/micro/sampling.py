"""Timing arms against each other: rounds that run every arm once in shuffled order, each sample of many repetitions."""

from __future__ import annotations

import contextlib
import gc
import math
import random
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ldlm_lint.probe import machine

WARM_UP = 3
ROUNDS = 25
LEAST_SAMPLE = 0.010
_MOST_INNER = 10_000

Call = Callable[[], Any]
Build = Callable[[], Call]
Clock = Callable[[Call, int], dict[str, float]]


@dataclass(frozen=True)
class Timing:
    """Samples in seconds per call, by clock and arm; ``clock`` is the deciding one.

    ``pressure`` is the percentage of the time in which some task waited for a CPU: the larger of PSI's some-avg10
    before the first round and of what passed during the rounds; ``switches`` how often this process lost its CPU.
    """

    clock: str
    samples: Mapping[str, Mapping[str, list[float]]]
    inner: int
    pressure: float | None = None
    switches: int | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)

    def of(self, arm: str, clock: str = "") -> list[float]:
        """The samples of an arm."""
        return self.samples[clock or self.clock][arm]

    @property
    def rounds(self) -> int:
        """How many rounds were finished."""
        return min((len(one) for one in self.samples[self.clock].values()), default=0)


def cpu_clock(call: Call, inner: int) -> dict[str, float]:
    """CPU seconds of this process per call: other work on the machine does not count."""
    began = time.process_time()
    for _ in range(inner):
        call()
    return {"process_time": (time.process_time() - began) / inner}


def wall_clock(call: Call, inner: int) -> dict[str, float]:
    """Seconds on the wall per call."""
    began = time.perf_counter()
    for _ in range(inner):
        call()
    return {"perf_counter": (time.perf_counter() - began) / inner}


def cuda_clock(torch: Any) -> Clock:
    """Seconds on the wall between synchronisations, and between CUDA events, per call."""

    def clock(call: Call, inner: int) -> dict[str, float]:
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        began = time.perf_counter()
        first.record()
        for _ in range(inner):
            call()
        last.record()
        torch.cuda.synchronize()
        wall = time.perf_counter() - began
        return {"perf_counter": wall / inner, "cuda_event": first.elapsed_time(last) / 1000 / inner}

    return clock


def compute_clock(torch: Any, device: str) -> Clock:
    """The clock for work that computes: CPU time of one thread, or the device's."""
    if device == "cuda":
        return cuda_clock(torch)
    torch.set_num_threads(1)
    return cpu_clock


def sample(
    arms: Mapping[str, Build],
    clock: Clock,
    *,
    seed: int,
    end: float,
    rounds: int = ROUNDS,
    rebuild: int = 0,
    inner: int = 0,
) -> Timing:
    """Run all arms for a number of rounds, or until ``end`` (`time.monotonic`) is near, and return the samples.

    With ``rebuild`` each arm's state is made again after so many rounds, so that its memory location counts as noise;
    it costs the warm-up each time. Without ``inner`` there are as many repetitions in a sample as make 10 ms.
    """
    draw = random.Random(seed)
    calls = {name: _warm(build) for name, build in arms.items()}
    times = inner or _repetitions(calls, clock)
    before, stalled, switches = machine.cpu_pressure(), machine.cpu_stalled(), machine.involuntary_switches()
    began, found, longest = time.monotonic(), [], 0.0
    with _uncollected():
        for number in range(rounds):
            started = time.monotonic()
            if started + longest > end:
                break
            if rebuild and number and number % rebuild == 0:
                # The old state is released first: a GPU may not hold both.
                calls.clear()
                calls = {name: _warm(build) for name, build in arms.items()}
            found.append(_round(calls, clock, times, draw))
            longest = max(longest, time.monotonic() - started)
    seconds = time.monotonic() - began
    return Timing(
        next(iter(next(iter(found[0].values())))) if found else "",
        _by_clock(found),
        times,
        _pressure(before, stalled, seconds),
        None if switches is None else (machine.involuntary_switches() or 0) - switches,
        {"seconds": round(seconds, 2)},
    )


def _round(calls: Mapping[str, Call], clock: Clock, inner: int, draw: random.Random) -> dict[str, dict[str, float]]:
    order = list(calls)
    draw.shuffle(order)
    taken = {name: clock(calls[name], inner) for name in order}
    return {name: taken[name] for name in calls}


def _warm(build: Build) -> Call:
    call = build()
    for _ in range(WARM_UP):
        call()
    return call


def _repetitions(calls: Mapping[str, Call], clock: Clock) -> int:
    """How many repetitions make a sample of 10 ms of the fastest arm; all arms get the same number."""
    fastest = min(next(iter(clock(call, 1).values())) for call in calls.values())
    return max(1, min(_MOST_INNER, math.ceil(LEAST_SAMPLE / max(fastest, 1e-7))))


def _by_clock(found: list[dict[str, dict[str, float]]]) -> dict[str, dict[str, list[float]]]:
    if not found:
        return {"": {}}
    clocks = next(iter(found[0].values()))
    return {clock: {arm: [one[arm][clock] for one in found] for arm in found[0]} for clock in clocks}


def _pressure(before: float | None, stalled: float | None, seconds: float) -> float | None:
    now = machine.cpu_stalled()
    during = 100 * (now - stalled) / seconds if stalled is not None and now is not None and seconds > 1 else None
    return max((one for one in (before, during) if one is not None), default=None)


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    gc.collect()
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
