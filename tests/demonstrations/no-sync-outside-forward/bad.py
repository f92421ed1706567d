"""no_sync() around the backward pass alone: the gradients are averaged all the same."""

# shows: gradient of rank 0: 0\.5
import os
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel


def work(rank: int) -> None:
    store = f"file://{os.path.abspath('store')}"
    dist.init_process_group("gloo", init_method=store, rank=rank, world_size=2, timeout=timedelta(seconds=30))
    model = DistributedDataParallel(torch.nn.Linear(1, 1))
    data = torch.full((1, 1), float(rank))
    loss = model(data).sum()
    with model.no_sync():
        loss.backward()
    if rank == 0:
        print("gradient of rank 0:", model.module.weight.grad.item())
    # DDP first: freed after its group, gloo may wait for a thread that waits for the interpreter's lock (pytorch#56297).
    del model
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(work, nprocs=2)
