"""The problems of a run as values: alarms, their severity, and the lint rules that look for their causes."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

FEWEST_BETWEEN = 200
MOST_PER_SERIES = 5


class Level(enum.IntEnum):
    """The severity of an alarm: INFO is useful to know, WARNING costs time or quality, CRITICAL ends or ruins the
    run.
    """

    INFO = 0
    WARNING = 1
    CRITICAL = 2

    @property
    def word(self) -> str:
        """The level as written in reports and arguments."""
        return self.name.lower()


class Kind(NamedTuple):
    """One kind of problem: its title, its default level, and the lint rules against its causes."""

    title: str
    level: Level
    rules: tuple[str, ...] = ()


_TIMEOUTS = ("excessive-collective-timeout", "excessive-heartbeat-timeout", "nccl-monitoring-disabled")
_DIVERGING = ("clip-before-unscale", "accumulation-loss-not-scaled", "batch-size-drift")
_UNMOVED = ("clamped-loss", "parameters-frozen-after-wrap", "requires-grad-toggled-per-step")
_CRASH = Level.CRITICAL

KINDS: Mapping[str, Kind] = {
    # series
    "nan-loss": Kind("loss is not a number", _CRASH, _DIVERGING),
    "nan-gradient": Kind("gradient norm is not a number", Level.WARNING, ("clip-before-unscale",)),
    "loss-spike": Kind("loss spike", Level.WARNING, _DIVERGING),
    "divergence": Kind("loss diverges", _CRASH, _DIVERGING),
    "frozen-loss": Kind("loss is frozen", Level.WARNING, _UNMOVED),
    "plateau": Kind("loss stopped falling", Level.WARNING, (*_UNMOVED, "scheduler-per-micro-batch")),
    "gradient-explosion": Kind("gradient explosion", Level.WARNING, _DIVERGING),
    "gradient-vanished": Kind("gradients vanished", Level.WARNING, _UNMOVED),
    "throughput-drop": Kind(
        "throughput drop",
        Level.WARNING,
        ("loss-graph-accumulation", "cache-emptied-in-training-loop", "host-sync-in-training-loop"),
    ),
    "loader-stall": Kind(
        "waiting for data",
        Level.WARNING,
        ("dataloader-in-main-process", "dataloader-without-prefetch", "dataloader-without-persistent-workers"),
    ),
    "skipped-steps": Kind(
        "optimizer steps are skipped", Level.WARNING, ("grad-scaler-with-bfloat16", "clip-before-unscale")
    ),
    "loss-scale-collapse": Kind(
        "loss scale collapsed", Level.WARNING, ("grad-scaler-with-bfloat16", "clip-before-unscale")
    ),
    "lr-zero": Kind(
        "learning rate is zero", Level.WARNING, ("scheduler-per-micro-batch", "scheduler-before-optimizer")
    ),
    "silence": Kind("silence", Level.WARNING, (*_TIMEOUTS, "rank-local-skip")),
    "restart": Kind("step went backwards", Level.INFO, ("non-atomic-checkpoint",)),
    # events
    "oom": Kind(
        "out of device memory",
        _CRASH,
        ("missing-activation-checkpointing", "loss-graph-accumulation", "evaluation-with-gradients"),
    ),
    "host-oom": Kind(
        "out of host memory", _CRASH, ("dataloader-too-many-workers", "checkpoint-load-without-map-location")
    ),
    "shared-memory": Kind("out of shared memory", _CRASH, ("dataloader-too-many-workers",)),
    "worker-died": Kind("a loader worker died", _CRASH, ("dataloader-too-many-workers",)),
    "disk-full": Kind("disk full", _CRASH, ("unbounded-checkpoints", "checkpoint-saved-by-every-rank")),
    "nccl-timeout": Kind(
        "collective timed out", _CRASH, ("rank-local-skip", "subgroup-timeout-not-inherited", *_TIMEOUTS[:1])
    ),
    "nccl-heartbeat": Kind("NCCL watchdog hung", _CRASH, _TIMEOUTS[1:]),
    "collective-mismatch": Kind(
        "ranks run different collectives", _CRASH, ("rank-local-skip", "no-sync-outside-forward")
    ),
    "ddp-unused": Kind(
        "DDP: parameters without gradient", _CRASH, ("parameters-frozen-after-wrap", "requires-grad-toggled-per-step")
    ),
    "ddp-static-graph": Kind(
        "DDP: the graph changed", _CRASH, ("static-graph-with-dynamic-model", "static-graph-with-no-sync")
    ),
    "connection-lost": Kind("connection to another rank lost", _CRASH, _TIMEOUTS[:1]),
    "nccl-error": Kind("NCCL error", _CRASH, ("nccl-transport-disabled", "nccl-error-handling-disabled")),
    "cuda-error": Kind("CUDA error", _CRASH),
    "hardware": Kind("hardware error", _CRASH),
    "nan-message": Kind("the program reports NaN", Level.WARNING, ("clip-before-unscale",)),
    "scale-at-minimum": Kind(
        "loss scale is at its minimum", _CRASH, ("grad-scaler-with-bfloat16", "clip-before-unscale")
    ),
    "rendezvous": Kind("ranks could not connect to each other", _CRASH, _TIMEOUTS[:1]),
    "storage": Kind("the file system failed", _CRASH),
    "checkpoint-failed": Kind("a checkpoint failed", Level.WARNING, ("non-atomic-checkpoint", "unbounded-checkpoints")),
    "network": Kind("a request to a server failed", Level.WARNING),
    "stuck": Kind("the program reports that it is stuck", _CRASH, (*_TIMEOUTS, "rank-local-skip")),
    "straggler": Kind("the program reports a slow rank", Level.WARNING),
    "child-failed": Kind("a rank failed", _CRASH, ("pipeline-hides-failure",)),
    "killed": Kind("a process was killed", _CRASH),
    "preempted": Kind("the job was preempted or cancelled", Level.WARNING, ("non-atomic-checkpoint",)),
    "exception": Kind("exception", _CRASH),
    "interrupted": Kind("interrupted by the user", Level.INFO),
    "overflow": Kind("gradient overflow", Level.INFO),
}


@dataclass(slots=True)
class Alarm:
    """A problem at a place of a log, with its numbers. Repeats are counted here instead of creating a new alarm.

    ``series`` names the quantity, empty for events; ``line`` and ``step`` are of the first occurrence, ``last_line``
    and ``last_step`` of the last. ``ranks`` are the affected ranks, empty if unknown. ``detected`` is the line at which
    it was certain.
    """

    kind: str
    level: Level
    source: str
    message: str
    line: int
    series: str = ""
    step: int | None = None
    detected: int = 0
    time: float | None = None
    ranks: tuple[int, ...] = ()
    numbers: dict[str, float | int | str | list[int]] = field(default_factory=dict)
    count: int = 1
    last_line: int = 0
    last_step: int | None = None

    @property
    def title(self) -> str:
        """A short title."""
        return KINDS[self.kind].title

    @property
    def rules(self) -> tuple[str, ...]:
        """The lint rules that look for causes of it."""
        return KINDS[self.kind].rules


class AlarmBook:
    """The alarms of all sources, rate-limited: the same problem in one series is one alarm for a while, then a new one.

    The last of `MOST_PER_SERIES` alarms takes all further repeats, so that memory stays bounded.
    """

    def __init__(self) -> None:
        self.alarms: list[Alarm] = []
        self._open: dict[tuple[str, str, str], tuple[Alarm, int, int]] = {}

    def add(self, alarm: Alarm, position: int = 0) -> bool:
        """Add an alarm and return whether it is new; ``position`` counts the points (or lines) of its series."""
        key = alarm.source, alarm.series, alarm.kind
        known = self._open.get(key)
        if known is not None:
            before, last, made = known
            if position - last < FEWEST_BETWEEN or made >= MOST_PER_SERIES:
                _merge(before, alarm)
                self._open[key] = before, position, made
                return False
        self._open[key] = alarm, position, (known[2] if known else 0) + 1
        alarm.last_line, alarm.last_step = alarm.line, alarm.step
        alarm.detected = alarm.detected or alarm.line
        self.alarms.append(alarm)
        return True

    def at_least(self, level: Level) -> Iterator[Alarm]:
        """The alarms of a level and above."""
        return (one for one in self.alarms if one.level >= level)


def _merge(before: Alarm, again: Alarm) -> None:
    before.count += again.count
    before.last_line, before.last_step = again.line, again.step
    before.level = max(before.level, again.level)
    before.ranks = tuple(sorted({*before.ranks, *again.ranks}))
