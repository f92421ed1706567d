"""How long the iterations of a watched program took: by phase, with unrepresentative ones separate."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection
from typing import Any

from ldlm_lint.evidence.model import plain
from ldlm_lint.evidence.statistics import quartiles
from ldlm_lint.probe.session import Phase, Session

MOST_KEPT = 10_000


class Clock:
    """The durations of iterations in seconds of wall time, host side; the first one has no start and is left out."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._seconds: dict[str, list[float]] = {}
        self._disturbed: Counter[str] = Counter()
        self._backwards: Counter[int] = Counter()
        self._pending = 0

    def backward(self) -> None:
        """A top-level backward pass begins."""
        self._pending += 1

    def iteration(self, phase: Phase, disturbances: Collection[str]) -> None:
        """An iteration is over; ``disturbances`` say why it is not representative."""
        now = time.perf_counter()
        self._backwards[self._pending] += 1
        self._pending = 0
        if self._since is None:
            return
        self._disturbed.update(disturbances)
        kept = self._seconds.setdefault("disturbed" if disturbances else phase.value, [])
        if len(kept) < MOST_KEPT:
            kept.append(now - self._since)

    def restart(self) -> None:
        """The probe's own work after an iteration is done: the next one begins now."""
        self._since = time.perf_counter()

    def summary(self, session: Session, unit: str) -> dict[str, Any]:
        """A summary of the iterations, as plain values."""
        return {
            "unit": unit,
            "count": session.step,
            "backward_passes": session.backwards,
            "backward_passes_per_step": {str(count): steps for count, steps in sorted(self._backwards.items())},
            "seconds": {phase: plain(quartiles(found)) for phase, found in self._seconds.items()},
            "disturbed_by": dict(self._disturbed),
        }
