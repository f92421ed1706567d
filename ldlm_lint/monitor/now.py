"""The current state of a followed run, for viewers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ldlm_lint.monitor.progress import Progress

if TYPE_CHECKING:
    from ldlm_lint.probe.machine import Gpu


@dataclass(frozen=True, slots=True)
class Now:
    """The state of a followed run besides its logs: progress, what it waits for, and this machine's GPUs.

    ``heard`` is when the newest line came, in seconds since 1970; ``silent`` the seconds without a line, once that is
    unusual for this run; ``ended`` that nothing more can come. A run that is not ``live`` is read from finished logs.
    """

    progress: Mapping[str, Progress] = field(default_factory=dict)
    waiting: Sequence[str] = ()
    gpus: Sequence[Gpu] = ()
    heard: float | None = None
    silent: float | None = None
    ended: bool = False
    live: bool = True
