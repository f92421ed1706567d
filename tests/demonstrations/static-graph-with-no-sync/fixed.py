"""No static graph, and no_sync() in the first backward pass."""

# shows: steps: 2
import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    store = f"file://{os.path.abspath('store')}"
    dist.init_process_group("gloo", init_method=store, rank=0, world_size=1, timeout=timedelta(seconds=30))
    model = DistributedDataParallel(torch.nn.Linear(4, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        with model.no_sync():
            model(torch.ones(1, 4)).mean().backward()
        model(torch.ones(1, 4)).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    print("steps: 2")
    # DDP first: freed after its group, gloo may wait for a thread that waits for the interpreter's lock (pytorch#56297).
    del model
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
