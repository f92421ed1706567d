"""Copies from the host to the device in the profiled iteration: from pageable or from pinned memory."""

from __future__ import annotations

from typing import Any

from ldlm_lint.probe.session import Observer, Session

# As CUPTI names them. Not yet run on CUDA.
_PAGEABLE = "Memcpy HtoD (Pageable -> Device)"
_PINNED = "Memcpy HtoD (Pinned -> Device)"


class Copies(Observer):
    """What the profile says of copies; on a CPU there are none."""

    topic = "copies"

    def __init__(self) -> None:
        self._seen: dict[str, Any] | None = None

    def profiled(self, session: Session, profile: Any) -> None:
        if session.device != "cuda":
            return
        rows = list(profile.key_averages())
        self._seen = {
            name: {"count": sum(one.count for one in rows if one.key == key), "microseconds": _device_time(rows, key)}
            for name, key in (("pageable", _PAGEABLE), ("pinned", _PINNED))
        }
        spans = [(one.time_range.start, one.time_range.end) for one in profile.events()]
        self._seen["step_microseconds"] = (
            max(end for _, end in spans) - min(start for start, _ in spans) if spans else 0
        )

    def collect(self, session: Session) -> Any:
        return self._seen


def _device_time(rows: list[Any], key: str) -> float:
    # torch 2.4 renamed cuda_time_total.
    return sum(
        getattr(one, "device_time_total", getattr(one, "cuda_time_total", 0.0)) for one in rows if one.key == key
    )
