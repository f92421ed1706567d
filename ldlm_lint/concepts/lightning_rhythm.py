"""How often a Lightning Trainer does something with a configured interval: an interval as long as the run means
once.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from ldlm_lint.concepts.asked_for import is_same
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.queries import State

if TYPE_CHECKING:
    from ldlm_lint.program.modules import Module
    from ldlm_lint.program.queries import Queries

TRAINERS = frozenset(
    f"{package}.{module}Trainer" for package in ("pytorch_lightning", "lightning", "lightning.pytorch") for module in ("", "trainer.", "trainer.trainer.")
)
_EPOCHS, _VALIDATES = "max_epochs", "check_val_every_n_epoch"


class LightningRhythm:
    """Answers for the Trainers of a program."""

    def __init__(self, ask: Queries) -> None:
        self.ask = ask
        self.program = ask.program

    @cached_property
    def trainers(self) -> list[int]:
        """The calls (keys) that make Trainers."""
        return list(dict.fromkeys(call for call, _ in self.ask.calls_of(TRAINERS)))

    def saves_once(self, call: int) -> bool:
        """Whether a `ModelCheckpoint`, by the call that makes it, saves only at the end of the run, with all Trainers
        that may use it."""
        every = self._given(call, "every_n_epochs")
        others = [name for name in ("every_n_train_steps", "train_time_interval") if self.ask.argument(call, name).state is not State.ABSENT]
        trainers = self._near(self.program.module_of(call))
        return every is not None and not others and bool(trainers) and all(self._lasts(every, one) for one in trainers)

    def validates_once(self, module: Module) -> bool:
        """Whether all Trainers that may run a module of the project validate only at the end of the run."""
        trainers = self._near(module)
        intervals = [(one, self._given(one, _VALIDATES)) for one in trainers]
        return bool(trainers) and all(every is not None and self._lasts(every, one) for one, every in intervals)

    def _near(self, module: Module) -> list[int]:
        """The Trainers in the programs of a module."""
        programs = self.program.together.programs_of(module)
        return [one for one in self.trainers if self.program.module_of(one).index in programs]

    def _given(self, call: int, name: str) -> int | None:
        found = self.ask.argument(call, name)
        return found.sources[0] if found.state is State.GIVEN and len(found.sources) == 1 else None

    def _lasts(self, every: int, trainer: int) -> bool:
        """Whether an interval is as long as a Trainer's run: the same setting for both, or known numbers."""
        epochs = self._given(trainer, _EPOCHS)
        if epochs is None:
            return False
        module = self.program.module_of(every)
        if module is self.program.module_of(epochs) and is_same(module, every & MASK, epochs & MASK):
            return True
        interval, length = self.ask.meaning(every).only, self.ask.meaning(epochs).only
        return isinstance(interval, int) and isinstance(length, int) and 0 < length <= interval
