"""The methods that a training framework calls in each step, and their arguments: hooks of trainers, and modules made
from a configuration."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from ldlm_lint.program.atoms import MAPPING, NOTHING, ON_DEVICE, WHERE_TENSOR, Value
from ldlm_lint.program.classes import is_model_of_transformers
from ldlm_lint.program.codebase import Concept
from ldlm_lint.program.handles import Call, Class

if TYPE_CHECKING:
    from ldlm_lint.program.modules import Module

OF_MM = ("mmdet", "mmdet3d", "mmseg", "mmcv", "mmengine")
"""The packages of OpenMMLab: what a configuration names, its runner makes, and its base classes call."""
_TRAINERS = ("transformers", "trl")
OF_LIGHTNING = ("training_step", "on_train_batch_start", "on_train_batch_end", "on_after_backward", "on_before_zero_grad", "on_before_optimizer_step")
"""Methods of a LightningModule that its Trainer calls in each step."""
_BATCH = ON_DEVICE | frozenset([MAPPING])
"""A Trainer passes each batch as a mapping."""
_OPTIMIZERS = frozenset({"torch.optim.Optimizer", "torch.optim.optimizer.Optimizer"})
_OF_MODULES = ("forward", "loss")


class FrameworkHooks(Concept):
    """The hooks of the classes of a program."""

    def of(self, owner: Class) -> Iterator[tuple[str, Value]]:
        """The methods of a class that a framework calls in each step, with the device of their arguments."""
        outside = owner.outside_bases
        if any(name.endswith("LightningModule") for name in outside):
            yield from ((name, ON_DEVICE) for name in OF_LIGHTNING)
        if any(name.endswith("Trainer") and name.partition(".")[0] in _TRAINERS for name in outside):
            yield from ((name, _BATCH) for name in ("compute_loss", "training_step", "get_batch_loss_metrics"))
            yield from ((name, ON_DEVICE) for name in _losses_of(owner))
        of_mm = {name for name in outside if name.partition(".")[0] in OF_MM}
        if of_mm and not any(".core" in name or "dataset" in name for name in outside):
            yield from ((name, WHERE_TENSOR) for name in ("forward_train", "train_step"))
            if any("etector" in name for name in outside):
                yield "forward", WHERE_TENSOR
        if any(map(is_model_of_transformers, outside)) and self._has_trainer:
            # A Trainer moves its batches to the device and calls the model with them.
            yield "forward", WHERE_TENSOR
        if not _OPTIMIZERS.isdisjoint(outside) and owner.name in self._names:
            # Training code steps it: a loop, a Trainer, an engine.
            yield "step", NOTHING
        if owner in self._from_configurations:
            if any(name.endswith("Assigner") for name in of_mm):
                yield "assign", WHERE_TENSOR
            elif owner.is_module:
                yield from ((name, WHERE_TENSOR) for name in _OF_MODULES)

    @cached_property
    def _has_trainer(self) -> bool:
        """Whether a class or object of the program is a Trainer of transformers or trl, or is derived from one."""
        return any(map(_makes_trainer, self.code.calls_ending("Trainer")))

    @cached_property
    def _names(self) -> frozenset[str]:
        """The names and attributes that the program reads: creating or passing on a class reads its name."""
        return frozenset(row[2] for module in self.program.live for row in module.nodes if row[0] in ("free", "attr"))

    @cached_property
    def _from_configurations(self) -> frozenset[Class]:
        """The classes in registries of an OpenMMLab project: a configuration names them, and no visible code creates
        them."""
        registered = (one for one in self.code.registered if _imports_mm(one.module))
        return frozenset(owner for one in registered for owner in one.as_classes)


def _makes_trainer(call: Call) -> bool:
    callee = call.callee
    outside = [*callee.outside_names, *(name for owner in callee.as_classes for name in owner.outside_bases)]
    return any(name.partition(".")[0] in _TRAINERS for name in outside)


def _losses_of(owner: Class) -> Iterator[str]:
    """The losses that a trainer of trl computes in its steps and a class derived from it computes instead: ``cpo_loss``."""
    return (name for name in owner.own_names if name.endswith("_loss") and name != "compute_loss")


def _imports_mm(module: Module) -> bool:
    """Whether a file imports from these packages."""
    return any(name.partition(".")[0] in OF_MM for name, _, _, _ in module.table.imports)
