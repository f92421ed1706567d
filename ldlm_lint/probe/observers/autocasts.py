"""Autocast: which types it was entered with, and where."""

from __future__ import annotations

from typing import Any

from ldlm_lint.probe.patches import Fragile, watch
from ldlm_lint.probe.session import Observer, Session
from ldlm_lint.probe.tallies import Tally

UNSEEN = "torch.compile is used, and would trace the watch on autocast"


class AutocastObserver(Observer):
    """One record for each place that enters autocast, and the type it computes in."""

    topic = "autocasts"

    def __init__(self) -> None:
        self._places = Tally(lambda: {"calls": 0})

    def install(self, session: Session) -> None:
        session.before_compile(lambda: self._given_up(session))
        owner = session.torch.amp.autocast_mode.autocast
        Fragile(
            session,
            lambda: [watch(session, owner, "__enter__", self.topic, before=lambda one: self._entered(session, one))],
        )

    def _given_up(self, session: Session) -> None:
        """Record that nothing more is observed: a judge must not conclude that autocast was off."""
        session.unavailable[self.topic] = UNSEEN

    def _entered(self, session: Session, one: Any) -> None:
        dtype = str(getattr(one, "fast_dtype", "")).removeprefix("torch.")
        place = self._places.here(
            session.root, device=getattr(one, "device", ""), dtype=dtype, enabled=bool(getattr(one, "_enabled", False))
        )
        place["calls"] += 1

    def collect(self, session: Session) -> Any:
        return self._places.records or None
