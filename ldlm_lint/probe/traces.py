"""The events of a finished profile, read from the trace itself: torch's own event tree takes ten times as long."""

from __future__ import annotations

from typing import Any, NamedTuple

# In the name of a fused CUDA kernel this shows after the first 190 characters.
LONGEST_NAME = 400
_KEPT = "_ldlm_lint_events"


class Event(NamedTuple):
    """An operator, a range or a kernel. ``start`` and ``end`` are of one clock, in the trace's unit; ``launched_by`` is
    the ``identity`` of the operator that a kernel belongs to, 0 if there is none."""

    name: str
    start: int
    end: int
    thread: int
    on_host: bool
    identity: int
    launched_by: int


def events(profile: Any) -> list[Event]:
    """All events except those of memory, in the order of their start; read once for all observers."""
    found = getattr(profile, _KEPT, None)
    if found is None:
        found = sorted(_read(profile), key=lambda one: one.start)
        setattr(profile, _KEPT, found)
    return found


def _read(profile: Any) -> list[Event]:
    results = getattr(getattr(profile, "profiler", None), "kineto_results", None)
    if results is None:
        raise RuntimeError("the profile has no trace")
    raw = [one for one in results.events() if one.name() != "[memory]"]
    # Nanoseconds since torch 2.4, microseconds before.
    if not raw or hasattr(raw[0], "start_ns"):
        spans = [(one.start_ns(), one.duration_ns()) for one in raw]
    else:
        spans = [(one.start_us(), one.duration_us()) for one in raw]
    return [
        Event(
            one.name(),
            start,
            start + length,
            one.start_thread_id(),
            "CPU" in str(one.device_type()),
            one.correlation_id(),
            one.linked_correlation_id(),
        )
        for one, (start, length) in zip(raw, spans, strict=True)
    ]
