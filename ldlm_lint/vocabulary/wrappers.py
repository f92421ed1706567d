"""What puts a model on several ranks, by dotted names: DDP's class, and what passes its options on."""

from __future__ import annotations

DDP = frozenset(
    {
        *(f"torch.nn.parallel.{module}DistributedDataParallel" for module in ("", "distributed.")),
        *("mmcv.parallel.MMDistributedDataParallel", "mmcv.parallel.distributed.MMDistributedDataParallel", "mmengine.model.MMDistributedDataParallel"),
    }
)
"""The class, and subclasses of it that take the same options."""
DDP_OPTIONS = frozenset(
    {
        *(f"accelerate.{module}DistributedDataParallelKwargs" for module in ("", "utils.", "utils.dataclasses.")),
        *(f"{package}.strategies.DDPStrategy" for package in ("lightning", "pytorch_lightning", "lightning.pytorch")),
        *(f"{package}.strategies.ddp.DDPStrategy" for package in ("pytorch_lightning", "lightning.pytorch")),
    }
)
"""What passes options on to the class."""
SEARCHING_STRATEGY = "ddp_find_unused_parameters_true"
"""Lightning's name of a strategy with such an option in it."""
TAKE_STRATEGY = frozenset(
    {
        *(f"{package}.{name}" for package in ("lightning", "lightning.pytorch", "pytorch_lightning") for name in ("Trainer", "trainer.Trainer")),
        *("lightning.Fabric", "lightning.fabric.Fabric", "lightning_fabric.Fabric"),
    }
)
"""What takes a strategy by its name."""
