"""Two ranks, each with a parameter that is never used, watched from inside."""

import os
import sys

import torch
import torch.distributed as dist
from torch import nn

import ldlm_lint.probe


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.used, self.dead = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        return self.used(x)


def main(out):
    with ldlm_lint.probe.watch(steps=5, out=out) as watched:
        dist.init_process_group("gloo")
        torch.manual_seed(0)
        model = nn.parallel.DistributedDataParallel(Net(), find_unused_parameters=True)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(7):
            model(torch.randn(2, 4)).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
        dist.barrier()
        dist.destroy_process_group()
    assert watched.done, watched.inactive
    sys.stdout.flush()
    # gloo's process group waits for its threads when it is freed, with the lock of the interpreter that they may wait for.
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1])
