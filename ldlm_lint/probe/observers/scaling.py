"""Gradient scalers and clipping: the scaling state when norms are computed, and how many steps were skipped."""

from __future__ import annotations

import math
import weakref
from typing import Any

from ldlm_lint.probe.patches import scaler_classes, watch
from ldlm_lint.probe.session import Observer, Session
from ldlm_lint.probe.sites import call_site
from ldlm_lint.probe.tallies import Tally

MOST_NORMS = 32
_CLIPPING = ("clip_grad_norm_", "clip_grad_value_")


class ScalingObserver(Observer):
    """``scalers``: one record for each created one; ``clips``: one for each place that clips, with the state of its
    gradients; a scaler that is not enabled counts as ``disabled``."""

    topic = "gradient_scaling"

    def __init__(self) -> None:
        self._scalers: list[dict[str, Any]] = []
        self._by_identity: dict[int, dict[str, Any]] = {}
        self._alive: dict[int, Any] = {}
        self._optimizers: dict[int, set[int]] = {}
        self._scaled: dict[int, int] = {}
        self._unscaled: dict[int, int] = {}
        self._asked: dict[int, int] = {}
        self._clips = Tally(self._fresh_clip)
        self._norms: list[tuple[dict[str, Any], Any]] = []
        self._taken = 0

    @staticmethod
    def _fresh_clip() -> dict[str, Any]:
        return {"calls": 0, "plain": 0, "scaled": 0, "unscaled": 0, "disabled": 0, "unclear": 0, "norms": []}

    def install(self, session: Session) -> None:
        for scaler in scaler_classes(session.torch):
            self._watch_scaler(session, scaler)

        def clipped(norm: Any, _: Any = None, most: Any = None, *__: Any, **options: Any) -> None:
            most = options.get("max_norm", options.get("clip_value", most))
            # A norm up to infinity is only measured. A limit that is a tensor is not read: that would wait for it.
            if not (isinstance(most, float) and math.isinf(most)):
                self._clipped(session, norm)

        utilities = session.torch.nn.utils
        for name in _CLIPPING:
            for owner in (utilities, getattr(utilities, "clip_grad", None)):
                if owner is not None:
                    watch(session, owner, name, self.topic, after=clipped)

    def _watch_scaler(self, session: Session, scaler: type) -> None:
        def made(_: Any, one: Any, *arguments: Any, **options: Any) -> None:
            self._of(one).update(site=call_site(session.root), asked=options.get("enabled"))

        watch(session, scaler, "__init__", self.topic, after=made)
        watch(session, scaler, "scale", self.topic, before=lambda one, *_, **__: self._scale(one))
        watch(session, scaler, "unscale_", self.topic, before=lambda one, *_, **__: self._unscale(one))
        watch(session, scaler, "step", self.topic, before=lambda one, optimizer, *_, **__: self._step(one, optimizer))
        watch(session, scaler, "update", self.topic, after=lambda _, one, *__, **___: self._update(one))

    def _of(self, scaler: Any) -> dict[str, Any]:
        record = self._by_identity.get(id(scaler))
        if record is None:
            device = str(getattr(scaler, "_device", "cuda"))
            record = {"site": None, "asked": None, "enabled": bool(scaler.is_enabled()), "device": device}
            record.update(scaled=0, unscaled=0, asked_steps=0, taken_steps=0, updates=0, last_scale=None)
            self._by_identity[id(scaler)] = record
            self._alive[id(scaler)] = weakref.ref(scaler)
            self._scalers.append(record)
        return record

    def _scale(self, scaler: Any) -> None:
        self._of(scaler)["scaled"] += 1
        self._scaled[id(scaler)] = self._scaled.get(id(scaler), 0) + 1

    def _unscale(self, scaler: Any) -> None:
        self._of(scaler)["unscaled"] += 1
        self._unscaled[id(scaler)] = self._unscaled.get(id(scaler), 0) + 1

    def _step(self, scaler: Any, optimizer: Any) -> None:
        self._of(scaler)["asked_steps"] += 1
        self._asked[id(optimizer)] = id(scaler)
        self._optimizers.setdefault(id(scaler), set()).add(id(optimizer))

    def _update(self, scaler: Any) -> None:
        self._of(scaler)["updates"] += 1
        self._scaled[id(scaler)] = self._unscaled[id(scaler)] = 0

    def before_step(self, session: Session, optimizer: Any) -> None:
        scaler = self._asked.pop(id(optimizer), None)
        if scaler is not None:
            self._by_identity[scaler]["taken_steps"] += 1

    def _clipped(self, session: Session, norm: Any) -> None:
        place = self._clips.here(session.root)
        place["calls"] += 1
        place[self._state()] += 1
        if isinstance(norm, session.torch.Tensor) and self._taken < MOST_NORMS:
            self._taken += 1
            # Read at the end: reading it here would wait for the device.
            self._norms.append((place, norm.detach()))

    def _state(self) -> str:
        """The state of the clipped gradients, from the calls of the scalers."""
        active = [identity for identity, count in self._scaled.items() if count]
        if not active:
            return "plain"
        if not all(self._by_identity[one]["enabled"] for one in active):
            return "disabled"
        if not any(self._unscaled.get(one) for one in active):
            return "scaled"
        several = len(active) > 1 or any(len(self._optimizers.get(one, ())) > 1 for one in active)
        return "unclear" if several else "unscaled"

    def conclude(self, session: Session) -> None:
        # Waiting for a value is allowed here: the timed work of the device has ended.
        self._read_norms(self._norms)
        self._norms = []
        for identity, reference in self._alive.items():
            scaler = reference()
            if scaler is not None and self._by_identity[identity]["updates"]:
                self._by_identity[identity]["last_scale"] = float(scaler.get_scale())

    @staticmethod
    def _read_norms(norms: list[tuple[dict[str, Any], Any]]) -> None:
        for place, norm in norms:
            place["norms"].append(float(norm))

    def collect(self, session: Session) -> Any:
        self._read_norms([one for one in self._norms if one[1].device.type == "cpu"])
        self._norms = [one for one in self._norms if one[1].device.type != "cpu"]
        if not self._scalers and not self._clips.records:
            return None
        return {"scalers": self._scalers, "clips": self._clips.records}
