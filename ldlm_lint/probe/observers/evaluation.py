"""Evaluation: whether gradients were recorded in forward passes of a model in evaluation mode."""

from __future__ import annotations

import weakref
from typing import Any

from ldlm_lint.probe.patches import tracing, watch, watch_outermost
from ldlm_lint.probe.session import Observer, Session
from ldlm_lint.probe.sites import call_site
from ldlm_lint.probe.tallies import Tally

MOST_PHASES = 50
FORWARDS_PER_PHASE = 4
# A model that is put into evaluation mode and then not used soon is not worth a hook on every call.
LONGEST_WAIT = 20_000


class EvaluationObserver(Observer):
    """One record for each place that calls a model in evaluation mode.

    A phase begins with the outermost ``eval()`` of a module that was training, and ends with the next ``train()`` of
    it; its first forward passes are observed. ``recording`` counts those with gradients on, ``learning`` the phases of
    such calls in which a backward pass or `autograd.grad` followed: then a model with frozen statistics is trained, or
    its gradients are needed, and it is not an evaluation.
    """

    topic = "evaluation"

    def __init__(self) -> None:
        self._places = Tally(
            lambda: {"calls": 0, "recording": 0, "phases": 0, "learning": 0, "module": "", "trained": False}
        )
        self._handle: Any = None
        self._family: frozenset[int] = frozenset()
        self._root = 0
        self._module: weakref.ref[Any] | None = None
        self._left = self._waited = self._phases = 0
        self._touched: list[dict[str, Any]] = []
        self._trained: set[int] = set()
        self._optimizers: set[int] = set()

    def install(self, session: Session) -> None:
        def switched(module: Any, mode: bool = True, *_: Any, **__: Any) -> None:
            if id(module) == self._root or mode:
                self._end_phase()
            if not mode and module.training and self._phases < MOST_PHASES:
                self._begin_phase(session, module)

        watch_outermost(session, iter((session.torch.nn.Module,)), "train", self.topic, before=switched)
        # Gradients of inputs and of networks in evaluation mode are computed by this call only.
        watch(session, session.torch.autograd, "grad", self.topic, before=lambda *_, **__: self.on_backward(session))
        session.on_take_back(self._disarm)

    def before_step(self, session: Session, optimizer: Any) -> None:
        if id(optimizer) not in self._optimizers:
            self._optimizers.add(id(optimizer))
            self._trained.update(id(one) for group in optimizer.param_groups for one in group["params"])

    def _begin_phase(self, session: Session, module: Any) -> None:
        family = frozenset(id(one) for one in module.modules())
        if self._handle is not None and not self._touched:
            # An encoder and its head, put into evaluation mode one after the other.
            self._family |= family
            return
        self._end_phase()
        self._root, self._phases = id(module), self._phases + 1
        self._module, self._family = weakref.ref(module), family
        self._left, self._waited = FORWARDS_PER_PHASE, 0
        is_tracing = tracing(session.torch)

        def forward(one: Any, _: Any) -> None:
            if is_tracing():
                return
            session.guard(self.topic, self._forward, session, one)

        register = session.torch.nn.modules.module.register_module_forward_pre_hook
        self._handle = register(forward)

    def _forward(self, session: Session, module: Any) -> None:
        self._waited += 1
        if id(module) not in self._family or not self._left or module.training:
            if self._waited > LONGEST_WAIT:
                self._disarm()
            return
        self._left -= 1
        if not self._left:
            self._disarm()
        place = self._places.at(call_site(session.root))
        place["calls"] += 1
        place["module"] = type(module).__name__
        place["trained"] = place["trained"] or any(id(one) in self._trained for one in module.parameters())
        if session.torch.is_grad_enabled() and any(one.requires_grad for one in module.parameters()):
            place["recording"] += 1
        if not any(one is place for one in self._touched):
            place["phases"] += 1
            self._touched.append(place)
        # Its children run inside of it; only calls from outside are places of evaluation.
        self._family = frozenset({self._root, id(module)})

    def _disarm(self) -> None:
        if self._handle is not None:
            self._handle.remove()
            self._handle = None

    def on_backward(self, session: Session) -> None:
        root = self._module() if self._module is not None else None
        # Lightning puts a model back into training mode without calling train().
        if root is not None and not root.training:
            for place in self._touched:
                place["learning"] += 1
        self._end_phase()

    def _end_phase(self) -> None:
        self._disarm()
        self._touched, self._root, self._module = [], 0, None

    def conclude(self, session: Session) -> None:
        self._disarm()

    def collect(self, session: Session) -> Any:
        return self._places.records or None
