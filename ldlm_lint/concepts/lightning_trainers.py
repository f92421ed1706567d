"""The Trainers of Lightning that a program makes, and the modules that each of them fits."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from ldlm_lint.program.codebase import Concept

if TYPE_CHECKING:
    from ldlm_lint.program.handles import Call, Class
    from ldlm_lint.program.modules import Module

TRAINERS = frozenset(
    f"{package}.{module}Trainer" for package in ("pytorch_lightning", "lightning", "lightning.pytorch") for module in ("", "trainer.", "trainer.trainer.")
)
_STRATEGIES = ("ddp", "fsdp", "deepspeed")
_MIXED = frozenset({"16", "16-mixed", "bf16", "bf16-mixed"})


class LightningTrainers(Concept):
    """Those of a program."""

    @cached_property
    def every(self) -> list[Call]:
        """The calls that make them."""
        return list(self.code.calls(TRAINERS))

    def fitting(self, owner: Class) -> list[Call]:
        """Those that fit an object of a class: ``trainer.fit(model, datamodule=data)``."""
        family = set(owner.subclasses)
        fits = (call for call in self.code.calls_named("fit") if any(not family.isdisjoint(one.classes_of) for one in call.arguments))
        fitting = [call.receiver for call in fits if call.receiver is not None]
        return [one for one in self.every if any(trainer.may_be_made_by(one) for trainer in fitting)]

    def near(self, module: Module) -> list[Call]:
        """Those in the programs of a module."""
        near = self.code.modules_near(module)
        return [one for one in self.every if one.module in near]

    def may_use_ranks(self, module: Module) -> bool:
        """Whether one that may run a module of the project is told of several devices or nodes, or of a strategy for them."""
        return any(map(_uses_ranks, self.near(module)))

    def clipping_mixed_precision(self, owner: Class) -> Call | None:
        """One that surely clips the gradients of a class's modules in mixed precision."""
        return next((one for one in self.fitting(owner) if _clips(one) and str(one.argument("precision").only) in _MIXED), None)


def _uses_ranks(trainer: Call) -> bool:
    strategy, devices = trainer.argument("strategy"), trainer.argument("devices")
    texts = {text for value in strategy.values for text in value.texts}
    is_strategy = any(text.startswith(_STRATEGIES) for text in texts) or any(value.made_by for value in strategy.values)
    counts = [value.may_be().only for value in devices.values]
    return is_strategy or not trainer.argument("num_nodes").is_absent or any(isinstance(one, int) and (one == -1 or one > 1) for one in counts)


def _clips(trainer: Call) -> bool:
    limit = trainer.argument("gradient_clip_val").only
    return isinstance(limit, (int, float)) and not isinstance(limit, bool) and limit > 0


__all__ = ["TRAINERS", "LightningTrainers"]
