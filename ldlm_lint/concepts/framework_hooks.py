"""The methods that a training framework calls in each step, and their arguments: hooks of trainers, and modules made
from a configuration."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from ldlm_lint.program import Program
from ldlm_lint.program.atoms import MAPPING, MASK, NOTHING, ON_DEVICE, WHERE_TENSOR, Value
from ldlm_lint.program.classes import is_model_of_transformers

OF_MM = ("mmdet", "mmdet3d", "mmseg", "mmcv", "mmengine")
"""The packages of OpenMMLab: what a configuration names, its runner makes, and its base classes call."""
_TRAINERS = ("transformers", "trl")
OF_LIGHTNING = ("training_step", "on_train_batch_start", "on_train_batch_end", "on_after_backward", "on_before_zero_grad", "on_before_optimizer_step")
"""Methods of a LightningModule that its Trainer calls in each step."""
_BATCH = ON_DEVICE | frozenset([MAPPING])
"""A Trainer passes each batch as a mapping."""
_OPTIMIZERS = frozenset({"torch.optim.Optimizer", "torch.optim.optimizer.Optimizer"})
_OF_MODULES = ("forward", "loss")


class FrameworkHooks:
    """The hooks of the classes of a program."""

    def __init__(self, program: Program) -> None:
        self.program = program

    def of(self, owner: int) -> Iterator[tuple[str, Value]]:
        """The methods of a class that a framework calls in each step, with the device of their arguments."""
        outside = self.program.outside_of(owner)
        if any(name.endswith("LightningModule") for name in outside):
            yield from ((name, ON_DEVICE) for name in OF_LIGHTNING)
        if any(name.endswith("Trainer") and name.partition(".")[0] in _TRAINERS for name in outside):
            yield from ((name, _BATCH) for name in ("compute_loss", "training_step", "get_batch_loss_metrics"))
            yield from ((name, ON_DEVICE) for name in self._losses_of(owner))
        of_mm = {name for name in outside if name.partition(".")[0] in OF_MM}
        if of_mm and not any(".core" in name or "dataset" in name for name in outside):
            yield from ((name, WHERE_TENSOR) for name in ("forward_train", "train_step"))
            if any("etector" in name for name in outside):
                yield "forward", WHERE_TENSOR
        if any(map(is_model_of_transformers, outside)) and self._has_trainer:
            # A Trainer moves its batches to the device and calls the model with them.
            yield "forward", WHERE_TENSOR
        if not _OPTIMIZERS.isdisjoint(outside) and self._is_named(owner):
            # Training code steps it: a loop, a Trainer, an engine.
            yield "step", NOTHING
        if owner in self._from_configurations:
            if any(name.endswith("Assigner") for name in of_mm):
                yield "assign", WHERE_TENSOR
            elif self.program.is_module(owner):
                yield from ((name, WHERE_TENSOR) for name in _OF_MODULES)

    @cached_property
    def _has_trainer(self) -> bool:
        """Whether a class or object of the program is a Trainer of transformers or trl, or is derived from one."""
        program = self.program
        names = (name for name in program.calls if name.endswith("Trainer"))
        return any(self._makes_trainer(call) for name in names for call in program.calls[name])

    def _makes_trainer(self, call: int) -> bool:
        program = self.program
        module = program.module_of(call)
        value = program.ask(module.base | module.nodes[call & MASK][1])
        outside = [fields[1] for fields in program.atoms.kinds(value, "x")]
        outside += [name for fields in program.atoms.kinds(value, "c") for name in program.outside_of(fields[1])]
        return any(name.partition(".")[0] in _TRAINERS for name in outside)

    def _is_named(self, owner: int) -> bool:
        """Whether the program uses a class: creates an object, or passes the class on."""
        return self.program.module_of(owner).scopes[owner & MASK].name in self._names

    @cached_property
    def _names(self) -> frozenset[str]:
        """The names and attributes that the program reads."""
        return frozenset(row[2] for module in self.program.live for row in module.nodes if row[0] in ("free", "attr"))

    def _losses_of(self, owner: int) -> Iterator[str]:
        """The losses that a trainer of trl computes in its steps and a class derived from it computes instead: ``cpo_loss``."""
        module = self.program.module_of(owner)
        for name in module.scopes[owner & MASK].bindings:
            if name.endswith("_loss") and name != "compute_loss":
                yield name

    @cached_property
    def _from_configurations(self) -> frozenset[int]:
        """The classes in registries of an OpenMMLab project: a configuration names them, and no visible code creates
        them."""
        program = self.program
        registered = sorted(one for definitions in program.registered.values() for one in definitions)
        own = (one for one in registered if self._imports_mm(one))
        return frozenset(fields[1] for one in own for fields in program.atoms.kinds(program.ask(one), "c"))

    def _imports_mm(self, key: int) -> bool:
        """Whether the file of an expression imports from these packages."""
        return any(name.partition(".")[0] in OF_MM for name, _, _, _ in self.program.module_of(key).table.imports)
