"""How often a Lightning Trainer does something with a configured interval: an interval as long as the run means
once.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Call, expression
from ldlm_lint.program.queries import State

if TYPE_CHECKING:
    from ldlm_lint.program.modules import Module

TRAINERS = frozenset(
    f"{package}.{module}Trainer" for package in ("pytorch_lightning", "lightning", "lightning.pytorch") for module in ("", "trainer.", "trainer.trainer.")
)
_RELOADS = ("reload_dataloaders_every_n_epochs", "reload_dataloaders_every_epoch")
_EPOCHS, _VALIDATES = "max_epochs", "check_val_every_n_epoch"


class LightningRhythm(Concept):
    """Answers for the Trainers of a program."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)


    @cached_property
    def trainers(self) -> list[int]:
        """The calls (keys) that make Trainers."""
        return list(dict.fromkeys(call for call, _ in self.ask.calls_of(TRAINERS)))

    def saves_once(self, callback: Call) -> bool:
        """Whether a `ModelCheckpoint`, by the call that makes it, saves only at the end of the run, with all Trainers
        that may use it."""
        every = self._given(callback.key, "every_n_epochs")
        others = [name for name in ("every_n_train_steps", "train_time_interval") if not callback.argument(name).is_absent]
        trainers = self._near(callback.module)
        return every is not None and not others and bool(trainers) and all(self._lasts(every, one) for one in trainers)

    def validates_once(self, module: Module) -> bool:
        """Whether all Trainers that may run a module of the project validate only at the end of the run."""
        trainers = self._near(module)
        intervals = [(one, self._given(one, _VALIDATES)) for one in trainers]
        return bool(trainers) and all(every is not None and self._lasts(every, one) for one, every in intervals)

    def reloads(self, hook: int) -> bool:
        """Whether every Trainer that may ask a hook (a function's key) for loaders asks again after some epochs: each
        loader then serves a few epochs at most."""
        module = self.program.module_of(hook)
        trainers = self._fitting(self.program.owner[hook]) if hook in self.program.owner else []
        trainers = trainers or self._near(module)
        return bool(trainers) and all(any(self._is_on(one, name) for name in _RELOADS) for one in trainers)

    def _fitting(self, owner: int) -> list[int]:
        """The Trainers that fit an object of a class: ``trainer.fit(model, datamodule=data)``."""
        family, atoms = set(self.program.below(owner)), self.program.atoms
        found: dict[int, None] = {}
        for call in self.program.calls.get("fit", ()):
            module = self.program.module_of(call)
            row = module.nodes[call & MASK]
            function = module.nodes[row[1]]
            given = [self.program.ask(module.base | one) for one in (*row[2], *(value for _, value in row[3]))]
            if function[0] == "attr" and any(fields[1] in family for value in given for fields in atoms.kinds(value, "i")):
                made = self.program.ask(module.base | function[1])
                found.update((fields[2], None) for fields in atoms.kinds(made, "o") if fields[2] in self._made)
        return list(found)

    @cached_property
    def _made(self) -> frozenset[int]:
        return frozenset(self.trainers)

    def _is_on(self, trainer: int, name: str) -> bool:
        """Whether an option of a Trainer is given and not surely 0 or off; a flag counts by its default."""
        given = self.ask.argument(trainer, name)
        if given.state not in (State.GIVEN, State.MAYBE):
            return False
        meaning = self.ask.meaning(*given.sources)
        defaults = [self.ask.default_of(self.ask.flag(one)).only for one in meaning.flags]
        return bool(defaults or meaning.constants or not meaning.is_complete) and not any(one in (0, False, None) for one in (*defaults, *meaning.constants))

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
        if expression(self.code, every).is_alike(expression(self.code, epochs)):
            return True
        interval, length = self.ask.meaning(every).only, self.ask.meaning(epochs).only
        return isinstance(interval, int) and isinstance(length, int) and 0 < length <= interval
