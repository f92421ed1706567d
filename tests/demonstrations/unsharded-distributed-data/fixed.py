"""Two ranks under DDP, each of which goes through its own samples."""

# shows: samples in one epoch of 2 ranks: 16 of 16\b
import tempfile
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def main(rank, store):
    options = {"timeout": timedelta(seconds=60), "rank": rank, "world_size": 2}
    dist.init_process_group("gloo", init_method=f"file://{store}", **options)
    dataset = TensorDataset(torch.arange(16.0).unsqueeze(1))
    model = DistributedDataParallel(nn.Linear(1, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    loader = DataLoader(dataset, batch_size=4, sampler=DistributedSampler(dataset))
    count = torch.tensor(0)
    for (numbers,) in loader:
        model(numbers).square().mean().backward()
        optimizer.step()
        count += len(numbers)
    dist.all_reduce(count)
    if rank == 0:
        print("samples in one epoch of 2 ranks:", int(count), "of", len(dataset))
    # DDP first: freed after its group, gloo may wait for a thread that waits for the interpreter's lock (pytorch#56297).
    del model, optimizer
    dist.destroy_process_group()


if __name__ == "__main__":
    folder = tempfile.mkdtemp()
    torch.multiprocessing.spawn(main, (str(Path(folder, "store")),), nprocs=2)
