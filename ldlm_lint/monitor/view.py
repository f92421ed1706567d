"""The terminal view while logs are followed: progress, the machine's GPUs, the newest values, the alarms."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ldlm_lint.monitor.alarms import Level
from ldlm_lint.monitor.health import Health
from ldlm_lint.monitor.progress import Progress
from ldlm_lint.monitor.report import latest, place, shown, told
from ldlm_lint.report.cells import clean

if TYPE_CHECKING:
    from ldlm_lint.probe.machine import Gpu, Gpus

SOURCES, GPUS, ROWS, FEWEST_ROWS, ALARMS = 6, 8, 12, 2, 6
GPU_EVERY = 2.0
"""Seconds between two questions to NVML, each of which opens and closes it."""
_GIB = 2**30


class GpuWatch:
    """The GPUs of this machine, queried at intervals; never again without NVML."""

    def __init__(self, ask: Callable[[], Gpus], clock: Callable[[], float] = time.monotonic) -> None:
        self._ask, self._clock = ask, clock
        self._seen: tuple[Gpu, ...] = ()
        self._due: float | None = clock()

    @property
    def now(self) -> tuple[Gpu, ...]:
        """The GPU state at most `GPU_EVERY` seconds old; empty without NVML."""
        if self._due is not None and self._clock() >= self._due:
            self._seen = self._ask().found
            self._due = self._clock() + GPU_EVERY if self._seen else None
        return self._seen


def local_gpus() -> GpuWatch:
    """The GPUs that NVML shows here."""
    from ldlm_lint.probe.machine import gpus

    return GpuWatch(gpus)


def view(
    health: Health,
    progress: Mapping[str, Progress],
    waiting: Sequence[str],
    gpus: Sequence[Gpu],
    width: int,
    height: int,
    address: str = "",
) -> Any:
    """The whole view, for a terminal of ``width`` columns and ``height`` rows: alarms have priority over series.

    ``address`` is where a browser shows the run too.
    """
    from rich.console import Group
    from rich.text import Text

    lines = [_row(clean(line)) for line in (*_sources(progress, waiting), *gpu_lines(gpus))]
    alarms = [one for one in health.book.alarms if one.level > Level.INFO][-ALARMS:]
    told_ = [
        _row(
            (one.level.word, "red" if one.level is Level.CRITICAL else "yellow"),
            f" {one.kind}  {place(one)}: {next(told(one))}",
        )
        for one in alarms
    ]
    calm = [Text("no alarms", "green")] if health.records else []
    page = [_row(("in the browser: ", "dim"), address)] if address else []
    last = [*(told_ or calm), *page, _row(("Ctrl-C stops and prints the report", "dim"))]
    room = max(FEWEST_ROWS, min(ROWS, height - len(lines) - len(last) - 1))
    return Group(*lines, _table(health, width, room), *last)


def _row(*parts: str | tuple[str, str]) -> Any:
    """One row of the terminal: long text ends with an ellipsis."""
    from rich.text import Text

    return Text.assemble(*parts, no_wrap=True, overflow="ellipsis")


def _sources(progress: Mapping[str, Progress], waiting: Sequence[str]) -> Iterator[str]:
    recent = sorted(progress.items(), key=lambda one: math.inf if one[1].age is None else one[1].age)
    for name, one in sorted(recent[:SOURCES]):
        yield f"{name}: {', '.join(_words(one))}"
    if len(recent) > SOURCES:
        yield f"and {len(recent) - SOURCES} more files"
    yield from (f"waiting for {path}" for path in waiting)


def _words(one: Progress) -> Iterator[str]:
    if one.step is not None:
        yield f"step {one.step:,}" + (f" of {one.total:,}" if one.total is not None else "")
    if one.epoch is not None:
        yield f"epoch {one.epoch:g}"
    if one.left is not None:
        yield f"about {duration(one.left)} left"
    age = one.age
    yield "no line yet" if age is None else f"last line {duration(age)} ago"


def duration(value: float) -> str:
    """Seconds as readable text: ``8 s``, ``2 min 5 s``, ``3 h 20 min``."""
    whole = int(value)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min"


def gpu_lines(gpus: Sequence[Gpu]) -> Iterator[str]:
    """The log may come from another machine, so the text says whose GPUs these are."""
    for one in gpus[:GPUS]:
        words = []
        if one.memory_used is not None:
            total = f" of {one.memory_total / _GIB:.1f}" if one.memory_total else ""
            words.append(f"{one.memory_used / _GIB:.1f}{total} GiB used")
        if one.utilization is not None:
            words.append(f"{one.utilization} % busy")
        if words:
            yield f"GPU {one.index} of this machine: {', '.join(words)}"
    if len(gpus) > GPUS:
        yield f"and {len(gpus) - GPUS} more GPUs"


def _table(health: Health, width: int, room: int) -> Any:
    from rich.table import Table
    from rich.text import Text

    rows = Table.grid(padding=(0, 2))
    course = min(max(16, width - 70), 60)
    for one in shown(health)[0][:room]:
        label = f"{one.key.source}: {one.key.label}" if len(health.sources) > 1 else one.key.label
        finite = math.isfinite(one.trace.latest)
        lost = f" + {one.curve.nonfinite:,} nan/inf" if one.curve.nonfinite else ""
        rows.add_row(
            Text(clean(label)),
            Text(latest(one), "" if finite else "bold red"),
            one.curve.sparkline(course),
            f"{one.curve.count:,} values{lost}",
        )
    return rows
