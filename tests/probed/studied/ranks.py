"""Two ranks with DDP: micro-batches, two samplers made at one line, checkpoints of rank 0."""

from __future__ import annotations

import contextlib
import datetime
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

WORDS = set(sys.argv[1:])
MICRO = 2


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.used, self.spare = nn.Linear(8, 16), nn.Linear(16, 1), nn.Linear(16, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.body(x).relu()
        return self.used(y) if "unused" in WORDS else self.used(y) + self.spare(y)


def sampler_of(data: TensorDataset, shuffle: bool) -> DistributedSampler:
    return DistributedSampler(data, shuffle=shuffle)  # holds: sampler-without-set-epoch unless set-epoch


def evaluate(model: nn.Module, loader: DataLoader) -> float:
    model.eval()
    with torch.no_grad():
        value = sum((model(x) - y).square().mean().item() for x, y in loader)
    model.train()
    return value


def main() -> None:
    torch.manual_seed(0)
    hours = 3 if "long" in WORDS else 0.1
    # holds: excessive-collective-timeout if long
    dist.init_process_group("gloo", timeout=datetime.timedelta(hours=hours))
    rank = dist.get_rank()
    data = TensorDataset(torch.randn(64, 8), torch.randn(64, 1))
    sampler, in_order = sampler_of(data, True), sampler_of(data, bool(WORDS & {"both-shuffled", "wrong-sampler"}))
    loader = DataLoader(data, batch_size=4, sampler=sampler)  # open: dataloader-in-main-process
    values = DataLoader(data, batch_size=16, sampler=in_order)  # open: dataloader-in-main-process
    model = DistributedDataParallel(  # holds: ddp-find-unused-parameters if find unless unused
        Net(), find_unused_parameters=bool(WORDS & {"find", "unused"})
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)  # holds: optimizer-not-fused
    for epoch in range(4):
        if "set-epoch" in WORDS:
            sampler.set_epoch(epoch)
        if "wrong-sampler" in WORDS:
            in_order.set_epoch(epoch)
        for index, (x, y) in enumerate(loader):  # holds: sampler-without-set-epoch unless set-epoch
            last = index % MICRO == MICRO - 1
            with model.no_sync() if "no-sync" in WORDS and not last else contextlib.nullcontext():
                loss = (model(x) - y).square().mean() / MICRO
                loss.backward()  # holds: accumulation-without-no-sync unless no-sync
            if last:
                optimizer.step()
                optimizer.zero_grad()
        evaluate(model, values)
        if "every-rank" in WORDS or rank == 0:
            # holds: checkpoint-saved-by-every-rank if every-rank; non-atomic-checkpoint unless aside
            torch.save(model.module.state_dict(), "ranks.tmp" if "aside" in WORDS else "ranks.pt")
            if "aside" in WORDS:
                os.replace("ranks.tmp", "ranks.pt")
        dist.barrier()
        if rank == 1 and epoch == 2 and "exit" in WORDS:
            sys.exit(1)
    del model
    dist.destroy_process_group()


main()
