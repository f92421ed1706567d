"""Gradients after ``zero_grad``: set to None, or kept as zero tensors."""

from __future__ import annotations

from typing import Any

from ldlm_lint.probe.patches import watch_outermost
from ldlm_lint.probe.session import Observer, Session
from ldlm_lint.probe.sites import call_site
from ldlm_lint.probe.tallies import Tally


class ZeroingObserver(Observer):
    """One record for each place that calls ``zero_grad`` of an optimizer or a module, and its argument.

    ``kept_bytes`` are the bytes of gradients at the first call that keeps them as zeros.
    """

    topic = "zeroed_gradients"

    def __init__(self) -> None:
        self._places = Tally(lambda: {"calls": 0, "explicit": False, "kept_bytes": None})

    def install(self, session: Session) -> None:
        torch = session.torch
        for owner in (torch.optim.Optimizer, torch.nn.Module):

            def zeroing(target: Any, set_to_none: bool | None = None, *_: Any, **__: Any) -> None:
                self._seen(session, target, set_to_none)

            watch_outermost(session, iter((owner,)), "zero_grad", self.topic, before=zeroing)

    def _seen(self, session: Session, target: Any, set_to_none: bool | None) -> None:
        keeps = set_to_none is not None and not set_to_none
        place = self._places.at(call_site(session.root), keeps=keeps)
        place["calls"] += 1
        place["explicit"] = place["explicit"] or set_to_none is not None
        if keeps and not place["kept_bytes"]:
            place["kept_bytes"] = sum(one.grad.numel() * one.grad.element_size() for one in _with_gradients(target))

    def collect(self, session: Session) -> Any:
        return self._places.records or None


def _with_gradients(target: Any) -> list[Any]:
    groups = getattr(target, "param_groups", None)
    parameters = target.parameters() if groups is None else (one for group in groups for one in group["params"])
    return [one for one in parameters if one.grad is not None]
