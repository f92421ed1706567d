"""The sample of one run of the command: times, memory, and loss and throughput from its log."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ldlm_lint.evidence.model import Evidence
from ldlm_lint.monitor.reader import LogReader
from ldlm_lint.monitor.records import Record, every

# The rates that a log may print; the first match counts.
RATES = ("samples_per_s", "tokens_per_s", "iterations_per_s")
_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class Logged:
    """The values in a log: the training loss by step (or by its number, if no step is printed), and its rate.

    ``rate`` is that of ``rate_key`` in the log, without the first quarter, which is warm-up: by the mean time for a unit,
    because rates of steps in bursts are high for most steps.
    """

    losses: Mapping[int, float] = field(default_factory=dict)
    rate: float | None = None
    rate_key: str = ""


@dataclass(frozen=True, slots=True)
class Sample:
    """One run of one arm in one round. Seconds and bytes; None if not measured.

    ``step_seconds`` is the mean time of an optimizer step on the slowest rank, ``memory_kind`` is the kind of peak in
    ``memory_bytes`` (``device`` or ``resident``), summed over the ranks. ``cuda`` says whether CUDA was available to
    any rank.
    """

    arm: str
    round: int
    seconds: float
    cpu_seconds: float | None = None
    steps: int = 0
    step_seconds: float | None = None
    memory_bytes: float | None = None
    memory_kind: str = ""
    logged: Logged = Logged()
    cuda: bool | None = None


def logged(path: Path) -> Logged:
    """The values in the output of a run; the loss is the first series of that name from rank 0 (or without a rank)."""
    return of_records(every(_reads(path)))


def _reads(path: Path) -> Iterator:
    reader = LogReader()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            yield from reader.read(chunk)
    yield from reader.close()


def of_records(records: Iterable[Record]) -> Logged:
    """The values in the records of one log; one template is one series, never mixed with another."""
    losses: dict[tuple, dict[int, float]] = {}
    rates: dict[tuple, list[float]] = {}
    for record in records:
        if record.rank not in (None, 0) or record.split == "val":
            continue
        loss = record.get("loss")
        if loss is not None:
            series = losses.setdefault((record.template.identity, record.actor), {})
            series[record.step if record.step is not None else len(series)] = loss
        for key in RATES:
            rate = record.get(key)
            if rate is not None:
                rates.setdefault((RATES.index(key), key, record.template.identity, record.actor), []).append(rate)
    rate_key, rate = _rate(rates)
    return Logged(max(losses.values(), key=len, default={}), rate, rate_key)


def _rate(rates: Mapping[tuple, Sequence[float]]) -> tuple[str, float | None]:
    if not rates:
        return "", None
    best = min(rates, key=lambda one: one[0])
    steady = [one for one in rates[best][len(rates[best]) // 4 :] if math.isfinite(one) and one > 0]
    return best[1], statistics.harmonic_mean(steady) if steady else None


def step_seconds(ranks: Sequence[Evidence]) -> float | None:
    """The time of a step on the slowest rank, in seconds: of a stretch of steps, by their number. A median would miss
    the steps that wait where batches come in bursts. None if no two steps were seen."""
    stretches = [one.observations.get("steps", {}).get("stretch", {}) for one in ranks]
    return max((one["seconds"] / one["steps"] for one in stretches if one and one["steps"] >= 2), default=None)


def memory(ranks: Sequence[Evidence]) -> tuple[float | None, str]:
    """The peak in bytes over all ranks: of the device's allocator if there is one, else of resident memory, with what
    the processes that a rank started (workers of loaders) take besides."""
    footprints = [one.observations.get("footprint", {}) for one in ranks]
    for key, kind in (("device_peak_bytes", "device"), ("resident_peak_bytes", "resident")):
        found = [one.get(key) for one in footprints]
        if found and all(found):
            workers = sum(one.get("worker_peak_bytes") or 0 for one in footprints) if kind == "resident" else 0
            return float(sum(found) + workers), kind
    return None, ""


def cuda(ranks: Sequence[Evidence]) -> bool | None:
    """Whether CUDA was available to any rank; None if one does not report it."""
    found = [one.observations.get("footprint", {}).get("cuda_available") for one in ranks]
    return None if not found or None in found else any(found)
