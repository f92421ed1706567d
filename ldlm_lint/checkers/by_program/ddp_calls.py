"""The DDP wrappers of a program, with options that come from elsewhere: branches, dictionaries, helpers, callers, other files."""

from __future__ import annotations

from collections.abc import Iterator

from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.program.queries import State
from ldlm_lint.python.names import published

DDP = "torch.nn.parallel.DistributedDataParallel"
WRAPPERS = frozenset({DDP, "torch.nn.parallel.distributed.DistributedDataParallel"})
ENGINES = frozenset(
    {
        "accelerate.DistributedDataParallelKwargs",
        "accelerate.utils.DistributedDataParallelKwargs",
        "accelerate.utils.dataclasses.DistributedDataParallelKwargs",
        *(f"{package}.strategies.DDPStrategy" for package in ("lightning", "pytorch_lightning", "lightning.pytorch")),
        *(f"{package}.strategies.ddp.DDPStrategy" for package in ("pytorch_lightning", "lightning.pytorch")),
    }
)


def wraps(view: View, names: frozenset[str]) -> Iterator[int]:
    """The calls of some wrappers, by whatever name a class comes."""
    for call, name in view.ask.calls_of(names):
        if published(name):
            yield call


def may_have(view: View, call: int, option: str) -> bool:
    """Whether an option may be given, or nobody knows."""
    return view.ask.argument(call, option).state is not State.ABSENT
