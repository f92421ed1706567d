"""A search for unused parameters around a model that drops a layer at random."""

# shows: steps: 20
import os
import random
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class Encoder(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(4, 4)
        self.second = torch.nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        if random.random() < 0.5:
            x = self.second(x)
        return x


def main() -> None:
    random.seed(0)
    store = f"file://{os.path.abspath('store')}"
    dist.init_process_group("gloo", init_method=store, rank=0, world_size=1, timeout=timedelta(seconds=30))
    model = DistributedDataParallel(Encoder(), find_unused_parameters=True)
    for _ in range(20):
        model(torch.ones(1, 4)).mean().backward()
    print("steps: 20")
    # DDP first: freed after its group, gloo may wait for a thread that waits for the interpreter's lock (pytorch#56297).
    del model
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
