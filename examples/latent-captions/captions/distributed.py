"""The process group of a run: one process alone, or the ranks that torchrun starts."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


@dataclass(frozen=True)
class Runtime:
    """Where this process stands among the ranks, and the device it computes on."""

    rank: int
    world_size: int
    device: torch.device

    @property
    def is_main(self) -> bool:
        """Whether this process prints and saves."""
        return self.rank == 0


def setup() -> Runtime:
    """Join the process group that torchrun describes in the environment, if there is one."""
    local_rank = int(os.environ.get("LOCAL_RANK", "0"))
    use_cuda = torch.cuda.is_available()
    device = torch.device("cuda", local_rank) if use_cuda else torch.device("cpu")
    if use_cuda:
        torch.cuda.set_device(device)
    if "WORLD_SIZE" not in os.environ:
        return Runtime(rank=0, world_size=1, device=device)
    # Rank 0 may have to write the caption cache first, which takes hours on the shared file system.
    dist.init_process_group(backend="nccl" if use_cuda else "gloo", timeout=timedelta(hours=10))
    return Runtime(rank=dist.get_rank(), world_size=dist.get_world_size(), device=device)


def wrap(model: nn.Module, runtime: Runtime) -> nn.Module:
    """Average gradients over the ranks; a process alone keeps the bare model."""
    if not dist.is_initialized():
        return model
    device_ids = [runtime.device.index] if runtime.device.type == "cuda" else None
    return DDP(model, device_ids=device_ids, find_unused_parameters=True)


def teardown() -> None:
    """Leave the process group, if this process joined one."""
    if dist.is_initialized():
        dist.destroy_process_group()
