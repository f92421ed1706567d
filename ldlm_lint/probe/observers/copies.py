"""Copies from the host to the device in the profiled iteration: from pageable or from pinned memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ldlm_lint.probe import traces
from ldlm_lint.probe.session import Observer, Session

# As CUPTI names them; seen on an H100 (docs/evidence/h100-2.11.md).
_PAGEABLE = "Memcpy HtoD (Pageable -> Device)"
_PINNED = "Memcpy HtoD (Pinned -> Device)"


class Copies(Observer):
    """The copies in the profile; on a CPU there are none."""

    topic = "copies"

    def __init__(self) -> None:
        self._seen: dict[str, Any] | None = None

    def profiled(self, session: Session, profile: Any) -> None:
        if session.device != "cuda":
            return
        seen = traces.events(profile)
        self._seen = {kind: _sum(seen, name) for kind, name in (("pageable", _PAGEABLE), ("pinned", _PINNED))}
        self._seen["step_time"] = max((one.end for one in seen), default=0) - min(
            (one.start for one in seen), default=0
        )

    def collect(self, session: Session) -> Any:
        return self._seen


def _sum(seen: Sequence[traces.Event], name: str) -> dict[str, int]:
    """How many copies there were and how long they took, in the trace's unit: used only for shares."""
    found = [one for one in seen if one.name == name]
    return {"count": len(found), "time": sum(one.end - one.start for one in found)}
