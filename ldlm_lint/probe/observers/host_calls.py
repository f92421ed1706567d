"""Calls that stall the device: ``synchronize`` and ``empty_cache``, by place and iteration."""

from __future__ import annotations

from typing import Any

from ldlm_lint.probe.patches import watch
from ldlm_lint.probe.session import Observer, Session
from ldlm_lint.probe.sites import call_site
from ldlm_lint.probe.tallies import Tally

SYNCHRONIZE, EMPTY = "synchronize", "empty_cache"


class HostCallObserver(Observer):
    """``places``: one record for each place, kind of call and caller (`Callers.of`), with the calls between the first
    and the last step of the watched iterations; ``iterations``: how many of these there were.

    The first iteration is not counted: everything before it belongs to the start.
    """

    topic = "host_calls"

    def __init__(self) -> None:
        self._places = Tally(lambda: {"calls": 0, "iterations": 0, "last": 0, "outside": 0})
        self._iterations = 0

    def install(self, session: Session) -> None:
        for backend in ("cuda", "accelerator"):
            owner = getattr(session.torch, backend, None)
            for name in (SYNCHRONIZE, EMPTY):
                if hasattr(owner, name):

                    def called(*_: Any, call: str = f"torch.{backend}.{name}", kind: str = name, **__: Any) -> None:
                        self._called(session, kind, call)

                    watch(session, owner, name, self.topic, before=called)

    def _called(self, session: Session, kind: str, call: str) -> None:
        site = call_site(session.root)
        place = self._places.at(site, kind=kind, call=call, caller=session.callers.of(session.root, site))
        if not session.step:
            place["outside"] += 1
            return
        place["calls"] += 1
        if place["last"] != session.step:
            place["last"] = session.step
            place["iterations"] += 1

    def after_step(self, session: Session) -> None:
        self._iterations = session.step - 1

    def collect(self, session: Session) -> Any:
        # The current iteration is incomplete.
        places = [
            {**place, "iterations": place["iterations"] - int(bool(place["last"]) and place["last"] >= session.step)}
            for place in self._places.records
        ]
        return {"iterations": self._iterations, "places": places} if places else None
