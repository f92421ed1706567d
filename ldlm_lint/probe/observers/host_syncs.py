"""Values read from tensors on the host: where, how often, and whether the host waited for the device.

On CUDA torch's own synchronisation debug mode reports waits. Elsewhere, and in addition to it, the methods that read a
value are watched for some iterations: these are candidates, distinguished by their callers.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

from ldlm_lint.probe.patches import Fragile, watch
from ldlm_lint.probe.session import Observer, Phase, Session
from ldlm_lint.probe.silence import drop, first
from ldlm_lint.probe.sites import call_site
from ldlm_lint.probe.tallies import Tally

READERS = ("item", "tolist", "__bool__", "__float__", "__int__", "__index__", "numpy", "cpu")
MOST_READS = 20_000
WARNING = "called a synchronizing CUDA operation"
_ALWAYS = ("always", re.compile(WARNING, re.IGNORECASE), Warning, None, 0)


class HostSyncObserver(Observer):
    """``places``: one record for each place that reads values, by ``caller`` (`Callers.of`); ``iterations``: how many
    were observed; ``warned``: whether torch itself reported synchronising operations."""

    topic = "host_syncs"

    def __init__(self) -> None:
        self._places = Tally(self._fresh)
        self._patches: Fragile | None = None
        self._first = self._iterations = self._reads = 0
        self._warned = False
        self._mode: int | None = None
        self._kept: Any = None

    @staticmethod
    def _fresh() -> dict[str, Any]:
        return {
            "reads": 0,
            "warned": 0,
            "methods": [],
            "devices": [],
            "on_graph": 0,
            "iterations": [],
            "warned_iterations": [],
        }

    def after_step(self, session: Session) -> None:
        if session.phase is not Phase.OBSERVE:
            return
        if session.step == 1:
            # A value read before the first step may belong to the preparation of data.
            self._begin(session)
        else:
            self._iterations += 1
            self._assert_mode(session)

    def _begin(self, session: Session) -> None:
        self._first = session.step
        if session.uses_compile:
            session.unavailable[self.topic] = "torch.compile is used, and would trace hooks on tensors"
        else:
            self._patches = Fragile(session, lambda: [self._reader(session, name) for name in READERS])
        self._begin_mode(session)

    def _reader(self, session: Session, method: str) -> Callable[[], None]:
        def read(values: Any, *_: Any, **__: Any) -> None:
            self._read(session, values, method)

        return watch(session, session.torch.Tensor, method, self.topic, before=read)

    def _read(self, session: Session, values: Any, method: str) -> None:
        self._reads += 1
        if self._reads > MOST_READS:
            self._end()
            session.unavailable[self.topic] = f"more than {MOST_READS} reads of values in the observed iterations"
            return
        if method == "cpu" and values.device.type == "cpu":
            return
        place = self._here(session)
        place["reads"] += 1
        place["on_graph"] += int(values.requires_grad)
        _note(place["methods"], method)
        _note(place["devices"], values.device.type)
        _note(place["iterations"], session.step)

    def _here(self, session: Session) -> dict[str, Any]:
        site = call_site(session.root)
        return self._places.at(site, caller=session.callers.of(session.root, site))

    def stop_observing(self, session: Session) -> None:
        self._end()
        self._end_mode(session)

    def _end(self) -> None:
        if self._patches is not None:
            self._patches.end()

    def _begin_mode(self, session: Session) -> None:
        """Have torch warn of operations that wait for the device, unless the program uses that mode itself."""
        cuda = session.torch.cuda
        if session.device != "cuda" or not hasattr(cuda, "set_sync_debug_mode"):
            return
        mode = cuda.get_sync_debug_mode()
        if mode:
            session.unavailable[f"{self.topic}: warnings"] = "the program uses torch.cuda.set_sync_debug_mode itself"
            return
        self._mode, self._warned = mode, True
        session.on_take_back(lambda: self._end_mode(session))
        self._assert_mode(session)

    def _assert_mode(self, session: Session) -> None:
        """Set the mode and the hook of warnings again: ``catch_warnings`` in the program removes the hook."""
        if self._mode is None:
            return
        session.torch.cuda.set_sync_debug_mode("warn")
        if getattr(warnings.showwarning, "__self__", None) is self and self._kept is not None:
            return
        self._kept = warnings.showwarning
        self._session = session
        warnings.showwarning = self._show
        if _ALWAYS not in warnings.filters:
            first(_ALWAYS)

    def _show(
        self, message: Any, category: Any, filename: str, lineno: int, file: Any = None, line: Any = None
    ) -> None:
        if WARNING not in str(message):
            self._kept(message, category, filename, lineno, file, line)
            return
        if not self._session.is_at_work:
            self._session.guard(self.topic, self._count_warning, self._session)

    def _count_warning(self, session: Session) -> None:
        place = self._here(session)
        place["warned"] += 1
        _note(place["warned_iterations"], session.step)

    def _end_mode(self, session: Session) -> None:
        if self._mode is None:
            return
        session.torch.cuda.set_sync_debug_mode(self._mode)
        self._mode = None
        if getattr(warnings.showwarning, "__self__", None) is self:
            warnings.showwarning = self._kept
        drop(_ALWAYS)

    def conclude(self, session: Session) -> None:
        self._end()
        self._end_mode(session)

    def collect(self, session: Session) -> Any:
        records = [
            {**one, "iterations": len(one["iterations"]), "warned_iterations": len(one["warned_iterations"])}
            for one in self._places.records
        ]
        if not records:
            return None
        return {"iterations": self._iterations, "warned": self._warned, "places": records}


def _note(values: list[Any], value: Any) -> None:
    if value not in values:
        values.append(value)
