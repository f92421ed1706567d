"""A search for unused parameters, and a non-reentrant checkpoint."""

# shows: steps: 2
import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(4, 4)
        self.second = torch.nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return checkpoint(self.second, self.first(x), use_reentrant=False)


def main() -> None:
    store = f"file://{os.path.abspath('store')}"
    dist.init_process_group("gloo", init_method=store, rank=0, world_size=1, timeout=timedelta(seconds=30))
    model = DistributedDataParallel(Net(), find_unused_parameters=True)
    for _ in range(2):
        model(torch.ones(1, 4)).mean().backward()
    print("steps: 2")
    # DDP first: freed after its group, gloo may wait for a thread that waits for the interpreter's lock (pytorch#56297).
    del model
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
