"""The DDP wrappers of a program, with options from any source: branches, dictionaries, helpers, callers, other
files.
"""

from __future__ import annotations

from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.program.queries import State
from ldlm_lint.python.names import spellings

DDP = "torch.nn.parallel.DistributedDataParallel"
WRAPPERS = spellings(DDP)
ENGINES = frozenset(
    {
        "accelerate.DistributedDataParallelKwargs",
        "accelerate.utils.DistributedDataParallelKwargs",
        "accelerate.utils.dataclasses.DistributedDataParallelKwargs",
        *(f"{package}.strategies.DDPStrategy" for package in ("lightning", "pytorch_lightning", "lightning.pytorch")),
        *(f"{package}.strategies.ddp.DDPStrategy" for package in ("pytorch_lightning", "lightning.pytorch")),
    }
)
SEARCHING_STRATEGY = "ddp_find_unused_parameters_true"
TAKE_STRATEGY = frozenset(
    {
        *(f"{package}.{name}" for package in ("lightning", "lightning.pytorch", "pytorch_lightning") for name in ("Trainer", "trainer.Trainer")),
        *("lightning.Fabric", "lightning.fabric.Fabric", "lightning_fabric.Fabric"),
    }
)


def may_have(view: View, call: int, option: str) -> bool:
    """Whether an option may be passed; True if unknown."""
    return view.ask.argument(call, option).state is not State.ABSENT
