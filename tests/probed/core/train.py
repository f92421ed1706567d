"""A small training with everything that a probe could disturb: dropout, shuffling, autocast, clipping, accumulation.

``train.py [eager|inductor] [profiler] [spawn=FILE]`` prints each loss bit for bit, and what it says of compiled graphs or of
its own profile.
"""

import contextlib
import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

BACKENDS = {"eager", "inductor"}


def train(rank, modes, place):
    torch.manual_seed(rank)
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 1))
    if place:
        dist.init_process_group("gloo", init_method=f"file://{place}", rank=rank, world_size=2)
        model = nn.parallel.DistributedDataParallel(model)
    backend = next(iter(BACKENDS & modes), None)
    run = torch.compile(model, backend=backend) if backend else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    loader = DataLoader(TensorDataset(torch.randn(64, 16)), batch_size=4, shuffle=True)
    profile = torch.profiler.profile(schedule=torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=1))
    if "profiler" in modes:
        profile.start()
    for step, (batch,) in enumerate(loader):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=not backend):
            loss = run(batch).float().pow(2).mean()
        (loss / 2).backward()
        if step % 2:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            if "profiler" in modes:
                profile.step()
        print(f"rank {rank} step {step}: {loss.item().hex()}\n", end="", flush=True)
    if "profiler" in modes:
        profile.stop()
        print("profiled", sorted(one.key for one in profile.key_averages() if "mm" in one.key or "Step#" in one.key))
    if backend:
        from torch._dynamo.utils import counters

        print("graphs", sorted(counters["stats"].items()), sorted(counters["graph_break"].items()))
    if place:
        dist.destroy_process_group()


def rank_of_two(rank, modes, place):
    with contextlib.suppress(SystemExit):
        train(rank, modes, place)
    # gloo's process group waits for its threads when it is freed, with the lock of the interpreter that they may wait for.
    os._exit(0)


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if arguments and arguments[0].startswith("spawn="):
        mp.spawn(rank_of_two, (set(), arguments[0].partition("=")[2]), 2)
        print("joined")
    else:
        train(0, set(arguments), "")
