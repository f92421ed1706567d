"""The operators and device kernels of the profiled iteration, by name."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ldlm_lint.probe.session import Observer, Session
from ldlm_lint.probe.traces import LONGEST_NAME, events

MOST_NAMES = 400


class OperationObserver(Observer):
    """How often each operator (``aten``) and each kernel of the device (``kernels``) ran in one whole iteration."""

    topic = "operations"

    def __init__(self) -> None:
        self._found: dict[str, Any] | None = None

    def profiled(self, session: Session, profile: Any) -> None:
        operators: Counter[str] = Counter()
        kernels: Counter[str] = Counter()
        for event in events(profile):
            names = operators if event.on_host else kernels
            names[event.name[:LONGEST_NAME]] += 1
        self._found = {
            "step": session.step,
            "aten": dict(operators.most_common(MOST_NAMES)),
            "kernels": dict(kernels.most_common(MOST_NAMES)),
        }

    def collect(self, session: Session) -> Any:
        return self._found
