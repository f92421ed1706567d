"""How often a Lightning Trainer does something with a configured interval: an interval as long as the run means
once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ldlm_lint.concepts.lightning_trainers import LightningTrainers
from ldlm_lint.program.codebase import Concept
from ldlm_lint.program.handles import Call, Expr, Function

if TYPE_CHECKING:
    from ldlm_lint.program.modules import Module

_RELOADS = ("reload_dataloaders_every_n_epochs", "reload_dataloaders_every_epoch")
_EPOCHS, _VALIDATES = "max_epochs", "check_val_every_n_epoch"


class LightningRhythm(Concept):
    """Answers for the Trainers of a program."""

    def saves_once(self, callback: Call) -> bool:
        """Whether a `ModelCheckpoint`, by the call that makes it, saves only at the end of the run, with all Trainers
        that may use it."""
        every = _given(callback, "every_n_epochs")
        others = [name for name in ("every_n_train_steps", "train_time_interval") if not callback.argument(name).is_absent]
        trainers = self.code[LightningTrainers].near(callback.module)
        return every is not None and not others and bool(trainers) and all(_lasts(every, one) for one in trainers)

    def validates_once(self, module: Module) -> bool:
        """Whether all Trainers that may run a module of the project validate only at the end of the run."""
        trainers = self.code[LightningTrainers].near(module)
        intervals = [(one, _given(one, _VALIDATES)) for one in trainers]
        return bool(trainers) and all(every is not None and _lasts(every, one) for one, every in intervals)

    def reloads(self, hook: Function) -> bool:
        """Whether every Trainer that may ask a hook for loaders asks again after some epochs: each loader then serves a few
        epochs at most."""
        every = self.code[LightningTrainers]
        trainers = (every.fitting(hook.owner) if hook.owner is not None else []) or every.near(hook.module)
        return bool(trainers) and all(any(_is_on(one, name) for name in _RELOADS) for one in trainers)


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


__all__ = ["LightningRhythm"]
