"""How often a Lightning Trainer does something with a configured interval: an interval as long as the run means
once.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from ldlm_lint.program.codebase import Concept
from ldlm_lint.program.handles import Call, Class, Expr, Function

if TYPE_CHECKING:
    from ldlm_lint.program.modules import Module

TRAINERS = frozenset(
    f"{package}.{module}Trainer" for package in ("pytorch_lightning", "lightning", "lightning.pytorch") for module in ("", "trainer.", "trainer.trainer.")
)
_RELOADS = ("reload_dataloaders_every_n_epochs", "reload_dataloaders_every_epoch")
_EPOCHS, _VALIDATES = "max_epochs", "check_val_every_n_epoch"


class LightningRhythm(Concept):
    """Answers for the Trainers of a program."""

    @cached_property
    def trainers(self) -> list[Call]:
        """The calls that make Trainers."""
        return list(self.code.calls(TRAINERS))

    def saves_once(self, callback: Call) -> bool:
        """Whether a `ModelCheckpoint`, by the call that makes it, saves only at the end of the run, with all Trainers
        that may use it."""
        every = _given(callback, "every_n_epochs")
        others = [name for name in ("every_n_train_steps", "train_time_interval") if not callback.argument(name).is_absent]
        trainers = self._near(callback.module)
        return every is not None and not others and bool(trainers) and all(_lasts(every, one) for one in trainers)

    def validates_once(self, module: Module) -> bool:
        """Whether all Trainers that may run a module of the project validate only at the end of the run."""
        trainers = self._near(module)
        intervals = [(one, _given(one, _VALIDATES)) for one in trainers]
        return bool(trainers) and all(every is not None and _lasts(every, one) for one, every in intervals)

    def reloads(self, hook: Function) -> bool:
        """Whether every Trainer that may ask a hook for loaders asks again after some epochs: each loader then serves a few
        epochs at most."""
        trainers = (self._fitting(hook.owner) if hook.owner is not None else []) or self._near(hook.module)
        return bool(trainers) and all(any(_is_on(one, name) for name in _RELOADS) for one in trainers)

    def _fitting(self, owner: Class) -> list[Call]:
        """The Trainers that fit an object of a class: ``trainer.fit(model, datamodule=data)``."""
        family = set(owner.subclasses)
        fits = (call for call in self.code.calls_named("fit") if any(not family.isdisjoint(one.classes_of) for one in call.arguments))
        fitting = [call.receiver for call in fits if call.receiver is not None]
        return [one for one in self.trainers if any(trainer.may_be_made_by(one) for trainer in fitting)]

    def _near(self, module: Module) -> list[Call]:
        """The Trainers in the programs of a module."""
        near = self.code.modules_near(module)
        return [one for one in self.trainers if one.module in near]


def _given(call: Call, name: str) -> Expr | None:
    found = call.argument(name)
    return found.values[0] if found.is_given and len(found.values) == 1 else None


def _is_on(trainer: Call, name: str) -> bool:
    """Whether an option of a Trainer is given and not surely 0 or off; a flag counts by its default."""
    given = trainer.argument(name)
    if given.is_absent or given.is_open:
        return False
    meaning = given.may_be()
    defaults = [option.default_value for one in given.values for option in one.options]
    return bool(defaults or meaning.constants or not meaning.is_complete) and not any(one in (0, False, None) for one in (*defaults, *meaning.constants))


def _lasts(every: Expr, trainer: Call) -> bool:
    """Whether an interval is as long as a Trainer's run: the same setting for both, or known numbers."""
    epochs = _given(trainer, _EPOCHS)
    if epochs is None:
        return False
    interval, length = every.may_be().only, epochs.may_be().only
    return every.is_alike(epochs) or (isinstance(interval, int) and isinstance(length, int) and 0 < length <= interval)


__all__ = ["TRAINERS", "LightningRhythm"]
