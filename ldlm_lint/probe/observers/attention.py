"""Attention: hand-written, as a softmax over a batched product, or one fused call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ldlm_lint.probe.patches import Fragile, watch
from ldlm_lint.probe.session import Observer, Session
from ldlm_lint.probe.tallies import Tally

# How far a softmax may be from the product of queries and keys: scaling, a bias, a mask, a cast.
FARTHEST = 6


class AttentionObserver(Observer):
    """One record for each place, by ``kind``: ``fused`` (scaled_dot_product_attention), ``by_hand``, or ``other``
    softmax.

    Only the first iterations are observed, and none of a program that compiles: its tracer would see the patches.
    """

    topic = "attention"

    def __init__(self) -> None:
        self._places = Tally(lambda: {"calls": 0, "training_calls": 0, "shape": [], "devices": []})
        self._patches: Fragile | None = None

    def install(self, session: Session) -> None:
        torch = session.torch
        functional = torch.nn.functional

        def softmax(values: Any, *_: Any, **options: Any) -> None:
            self._softmax(session, values)

        def fused(query: Any, *_: Any, **__: Any) -> None:
            self._seen(session, "fused", query)

        def patches() -> list[Callable[[], None]]:
            name = "scaled_dot_product_attention"
            return [
                *(
                    watch(session, owner, "softmax", self.topic, before=softmax)
                    for owner in (functional, torch, torch.Tensor)
                ),
                watch(session, functional, name, self.topic, before=fused),
            ]

        self._patches = Fragile(session, patches)

    def stop_observing(self, session: Session) -> None:
        if self._patches is not None:
            self._patches.end()

    def _softmax(self, session: Session, values: Any) -> None:
        if isinstance(values, session.torch.Tensor) and values.dim() >= 3:
            self._seen(session, "by_hand" if _after_product(values.grad_fn) else "other", values)

    def _seen(self, session: Session, kind: str, values: Any) -> None:
        place = self._places.here(session.root, kind=kind)
        place["calls"] += 1
        place["training_calls"] += int(session.torch.is_grad_enabled())
        place["shape"] = list(values.shape)
        if values.device.type not in place["devices"]:
            place["devices"].append(values.device.type)

    def collect(self, session: Session) -> Any:
        if session.uses_compile and not self._places.records:
            session.unavailable.setdefault(self.topic, "torch.compile is used, and would trace hooks on functions")
        return self._places.records or None


def _after_product(node: Any) -> bool:
    """Whether a batched product created the values a few operations earlier; keeps no reference to the graph."""
    for _ in range(FARTHEST):
        if node is None:
            return False
        if node.name().startswith(("BmmBackward", "BaddbmmBackward")):
            return True
        node = next((one for one, _ in node.next_functions if one is not None and not hasattr(one, "variable")), None)
    return False
