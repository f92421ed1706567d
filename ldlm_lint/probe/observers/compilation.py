"""torch.compile: where it is called, whether it raised there, and dynamo's counts for the program."""

from __future__ import annotations

import sys
from typing import Any

from ldlm_lint.probe.patches import watch
from ldlm_lint.probe.session import Observer, Session
from ldlm_lint.probe.tallies import Tally

MOST_REASONS = 20


class CompilationObserver(Observer):
    """``calls``: one record for each place that compiles; then dynamo's own counts at the end.

    The first call takes back all patches that dynamo would trace (`Session.before_compile`).
    """

    topic = "compilation"

    def __init__(self) -> None:
        self._calls = Tally(lambda: {"calls": 0, "errors": []})

    def install(self, session: Session) -> None:
        def failed(error: Exception, *_: Any, **__: Any) -> None:
            self._calls.here(session.root)["errors"].append(f"{type(error).__name__}: {error}"[:400])

        def called(*_: Any, **__: Any) -> None:
            session.compiles()
            self._calls.here(session.root)["calls"] += 1

        watch(session, session.torch, "compile", self.topic, before=called, failed=failed)
        self._watch_scripting(session)

    def _watch_scripting(self, session: Session) -> None:
        """Have fragile patches away while TorchScript compiles: it reads the source of every function that it meets."""

        depth = [0]

        def wrap(original: Any) -> Any:
            def script(obj: Any, optimize: Any = None, _frames_up: int = 0, *arguments: Any, **options: Any) -> Any:
                # It calls itself for each function that a function calls.
                depth[0] += 1
                for one in session.fragile:
                    one.pause()
                try:
                    # Names are looked up in the frame that calls it, which is one level further away now.
                    return original(obj, optimize, _frames_up + 1, *arguments, **options)
                finally:
                    depth[0] -= 1
                    for one in () if depth[0] else session.fragile:
                        one.resume()

            return script

        jit = session.torch.jit
        for owner in (jit, getattr(jit, "_script", None)):
            if hasattr(owner, "script"):
                session.patch(owner, "script", wrap, self.topic)

    def collect(self, session: Session) -> Any:
        calls = self._calls.records
        return {"calls": calls, **_counts()} if calls else None


def _counts() -> dict[str, Any]:
    """Dynamo's counts; empty if the program never started it."""
    utilities = sys.modules.get("torch._dynamo.utils")
    counters = getattr(utilities, "counters", None)
    if counters is None:
        return {
            "unique_graphs": 0,
            "calls_captured": 0,
            "graph_breaks": {},
            "recompiles": None,
            "suppress_errors": False,
        }
    breaks = sorted(counters["graph_break"].items(), key=lambda pair: -pair[1])[:MOST_REASONS]
    config = getattr(sys.modules.get("torch._dynamo.config"), "suppress_errors", False)
    metrics = getattr(utilities, "_compilation_metrics", None)
    recompiles = None
    if metrics is not None:
        recompiles = sum(1 for one in metrics if (getattr(one, "cache_size", 0) or 0) > 0)
    return {
        "unique_graphs": int(counters["stats"].get("unique_graphs", 0)),
        "calls_captured": int(counters["stats"].get("calls_captured", 0)),
        "graph_breaks": {str(reason)[:200]: int(count) for reason, count in breaks},
        "recompiles": recompiles,
        "suppress_errors": bool(config),
    }
