"""How long the iterations of a watched program took: by phase, with unrepresentative ones separate."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

from ldlm_lint.evidence.model import plain
from ldlm_lint.evidence.statistics import quartiles
from ldlm_lint.probe.session import Phase, Session

MOST_KEPT = 10_000
# Of a run of several steps, the share at the start that is warm-up.
_WARM_UP = 4
# Slow steps this far apart, as a share of the steps, begin and end the stretch.
_WIDE = 0.75


def stretch(durations: Sequence[float]) -> tuple[float, int]:
    """The seconds and the steps of the steady part of a run, in which also slow steps count.

    Where batches come in bursts, a few steps wait for all, so that the median says nothing. The stretch then begins and
    ends behind such a step: an end inside a burst would be off by up to one wait.

    >>> stretch([5, 9, 9, 1, 1, 4, 1, 1, 4, 1, 1, 4, 1, 1, 4, 1])
    (18, 9)
    """
    kept = durations[len(durations) // _WARM_UP :]
    mean = sum(kept) / len(kept) if kept else 0.0
    slow = [at for at, seconds in enumerate(kept) if seconds > mean]
    if slow and slow[-1] - slow[0] >= _WIDE * len(kept):
        kept = kept[slow[0] + 1 : slow[-1] + 1]
    return sum(kept), len(kept)


class Clock:
    """The durations of iterations in seconds of wall time, host side; the first one has no start and is left out."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._seconds: dict[str, list[float]] = {}
        self._disturbed: Counter[str] = Counter()
        self._backwards: Counter[int] = Counter()
        self._pending = 0
        self._every: list[float] = []

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
        if len(self._every) < MOST_KEPT:
            self._every.append(now - self._since)
        kept = self._seconds.setdefault("disturbed" if disturbances else phase.value, [])
        if len(kept) < MOST_KEPT:
            kept.append(now - self._since)

    def restart(self) -> None:
        """The probe's own work after an iteration is done: the next one begins now."""
        self._since = time.perf_counter()

    def summary(self, session: Session, unit: str) -> dict[str, Any]:
        """A summary of the iterations, as plain values; ``stretch`` includes those that are not representative."""
        seconds, steps = stretch(self._every)
        return {
            "unit": unit,
            "count": session.step,
            "backward_passes": session.backwards,
            "backward_passes_per_step": {str(count): steps for count, steps in sorted(self._backwards.items())},
            "seconds": {phase: plain(quartiles(found)) for phase, found in self._seconds.items()},
            "stretch": {"seconds": round(seconds, 6), "steps": steps},
            "disturbed_by": dict(self._disturbed),
        }
