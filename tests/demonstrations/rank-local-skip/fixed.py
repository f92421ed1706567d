"""Two processes train with DDP; one meets a loss that is not a number, and both skip the step."""

# shows: rank 0 is done
import os
import sys
import tempfile
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel


def train(rank: int, store: str) -> None:
    dist.init_process_group("gloo", init_method=store, rank=rank, world_size=2, timeout=timedelta(seconds=8))
    model = DistributedDataParallel(torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(2):
        batch = torch.ones(2, 4)
        if rank == 1 and step == 1:
            batch = batch * float("nan")
        optimizer.zero_grad()
        loss = model(batch).mean()
        skip = torch.isnan(loss).float()
        dist.all_reduce(skip, op=dist.ReduceOp.MAX)
        if skip:
            continue
        loss.backward()
        optimizer.step()
    print(f"rank {rank} is done\n", end="", flush=True)


def run(rank: int, store: str, together) -> None:
    together.wait()
    try:
        train(rank, store)
    except RuntimeError as error:
        print(f"left waiting in backward: {str(error).splitlines()[0]}\n", end="", flush=True)
    # A process that ends would be noticed by the other one at once.
    together.wait()
    # The group cannot be taken down in order once a collective has failed.
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        together = mp.get_context("spawn").Barrier(2)
        mp.spawn(run, (f"file://{folder}/store", together), nprocs=2)
