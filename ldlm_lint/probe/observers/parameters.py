"""Parameters of the trained models: those without a gradient when an optimizer steps, those in no optimizer, and
changes of the trained set."""

from __future__ import annotations

import weakref
from typing import Any

from ldlm_lint.probe.observers.models import Models, class_site, models_of, unwrapped
from ldlm_lint.probe.session import Observer, Phase, Session

_MOST_NAMES = 50


class _Watched:
    """One model: the trainable parameters of the last step, and those without a gradient."""

    def __init__(self, module: Any) -> None:
        self.module = weakref.ref(module)
        # Walking a module's names in every step would take longer than looking at its parameters.
        self.named = [(name, weakref.ref(one)) for name, one in module.named_parameters()]
        self.identities = {id(one) for one in module.parameters()}
        # By identity of the optimizer that steps: networks that are trained in turns are frozen meanwhile. DDP wraps a
        # model with all of its networks, and does not support changes of the registered parameters.
        self.trainable: dict[int, frozenset[str]] = {}
        self.whole = unwrapped(module) is not module
        self.steps = 0
        self.changes = 0
        self.changed: set[str] = set()
        self.without: dict[str, int] = {}
        self.record: dict[str, Any] = {}

    def step(self, optimizer: int) -> None:
        """An optimizer of this model is about to step."""
        self.steps += 1
        turn = 0 if self.whole else optimizer
        alive = ((name, held()) for name, held in self.named)
        trained = {name: one for name, one in alive if one is not None and one.requires_grad}
        before = self.trainable.get(turn)
        if before is not None and trained.keys() != before:
            self.changes += 1
            self.changed |= trained.keys() ^ before
        self.trainable[turn] = frozenset(trained)
        for name, one in trained.items():
            if one.grad is None:
                self.without[name] = self.without.get(name, 0) + 1

    def counts(self) -> dict[str, Any]:
        """The counts over all steps."""
        return {
            "steps": self.steps,
            "without_gradient": dict(sorted(self.without.items())[:_MOST_NAMES]),
            "without_gradient_count": len(self.without),
            "changes_of_trainable": self.changes,
            "changed": sorted(self.changed)[:_MOST_NAMES],
        }


class Parameters(Observer):
    """The trained parameters, step by step."""

    topic = "parameters"

    def __init__(self) -> None:
        self._models: Models | None = None
        self._watched: dict[int, _Watched] = {}
        self._held: set[int] = set()
        self._optimizers: weakref.WeakSet[Any] = weakref.WeakSet()
        self._backwards = 0
        self._later: dict[_Watched, int] = {}

    def install(self, session: Session) -> None:
        self._models = models_of(session)

    def before_step(self, session: Session, optimizer: Any) -> None:
        mine = {id(one) for group in optimizer.param_groups for one in group["params"]}
        if optimizer not in self._optimizers:
            self._optimizers.add(optimizer)
            self._held |= mine
        for root in self._models.roots if self._models else ():
            module = root.module()
            if module is None:
                continue
            watched = self._watched.get(id(module))
            if watched is None or watched.module() is not module:
                watched = self._watched[id(module)] = _Watched(module)
            # Of two networks trained in turns only the active one has gradients.
            if not watched.identities.isdisjoint(mine):
                self._step(session, watched, id(optimizer))

    def _step(self, session: Session, watched: _Watched, optimizer: int) -> None:
        if session.backwards > self._backwards:
            watched.step(optimizer)
        else:
            # The backward pass runs in a closure, inside of the step.
            self._later.setdefault(watched, optimizer)

    def after_step(self, session: Session) -> None:
        for watched, optimizer in self._later.items():
            watched.step(optimizer)
        self._later.clear()
        self._backwards = session.backwards
        # A program's models no longer exist at its end.
        if session.phase is Phase.OBSERVE:
            self._take_down(session)

    def _take_down(self, session: Session) -> None:
        for one in self._watched.values():
            module = one.module()
            # Held from here on: the collector could take it between two looks.
            if module is not None:
                one.record = self._record(session, module)

    def conclude(self, session: Session) -> None:
        self._take_down(session)

    def collect(self, session: Session) -> Any:
        return [one.record | one.counts() for one in self._watched.values() if one.record] or None

    def _record(self, session: Session, module: Any) -> dict[str, Any]:
        named = list(module.named_parameters())
        outside = [name for name, one in named if one.requires_grad and id(one) not in self._held]
        frozen = [name for name, one in named if not one.requires_grad and id(one) in self._held]
        inner = unwrapped(module)
        return {
            "class": type(inner).__qualname__,
            "site": class_site(session, type(inner)),
            "construction": self._models.construction_site(session, inner) if self._models else None,
            "in_no_optimizer": outside[:_MOST_NAMES],
            "frozen_in_optimizer": frozen[:_MOST_NAMES],
        }
