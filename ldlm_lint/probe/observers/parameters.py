"""Parameters of the trained models: those without a gradient when an optimizer steps, those that no optimizer holds,
and changes of what is trained."""

from __future__ import annotations

import weakref
from typing import Any

from ldlm_lint.probe.observers.models import Models, class_site, models_of, unwrapped
from ldlm_lint.probe.session import Observer, Session

_MOST_NAMES = 50


class _Watched:
    """One model: what was trainable in the last step, and what lacked a gradient."""

    def __init__(self, module: Any) -> None:
        self.module = weakref.ref(module)
        self.identities = {id(one) for one in module.parameters()}
        self.trainable = _trainable(module)
        self.steps = 0
        self.changes = 0
        self.changed: set[str] = set()
        self.without: dict[str, int] = {}

    def step(self) -> None:
        module = self.module()
        if module is None:
            return
        self.steps += 1
        trainable = _trainable(module)
        if trainable != self.trainable:
            self.changes += 1
            self.changed |= trainable ^ self.trainable
            self.trainable = trainable
        for name, one in module.named_parameters():
            if one.requires_grad and one.grad is None:
                self.without[name] = self.without.get(name, 0) + 1


class Parameters(Observer):
    """Which parameters learn, step by step."""

    topic = "parameters"

    def __init__(self) -> None:
        self._models: Models | None = None
        self._watched: dict[int, _Watched] = {}
        self._held: set[int] = set()
        self._optimizers: weakref.WeakSet[Any] = weakref.WeakSet()

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
            # Of two networks that take turns only the one whose turn it is has gradients.
            if not watched.identities.isdisjoint(mine):
                watched.step()

    def collect(self, session: Session) -> Any:
        return [self._record(session, one) for one in self._watched.values() if one.module() is not None] or None

    def _record(self, session: Session, watched: _Watched) -> dict[str, Any]:
        module = watched.module()
        named = list(module.named_parameters())
        outside = [name for name, one in named if one.requires_grad and id(one) not in self._held]
        frozen = [name for name, one in named if not one.requires_grad and id(one) in self._held]
        inner = unwrapped(module)
        return {
            "class": type(inner).__qualname__,
            "site": class_site(session, type(inner)),
            "construction": self._models.construction_site(session, inner) if self._models else None,
            "steps": watched.steps,
            "without_gradient": dict(sorted(watched.without.items())[:_MOST_NAMES]),
            "without_gradient_count": len(watched.without),
            "in_no_optimizer": outside[:_MOST_NAMES],
            "frozen_in_optimizer": frozen[:_MOST_NAMES],
            "changes_of_trainable": watched.changes,
            "changed": sorted(watched.changed)[:_MOST_NAMES],
        }


def _trainable(module: Any) -> frozenset[str]:
    return frozenset(name for name, one in module.named_parameters() if one.requires_grad)
