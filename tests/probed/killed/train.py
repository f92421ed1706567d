"""Two ranks, or one, that save in every step; rank 0 dies of the signal that its argument names in the forward pass of step 8."""

import os
import signal
import sys

import torch
import torch.distributed as dist
from torch import nn

STEPS, DIES_IN = 20, 8


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.step = nn.Linear(4, 4), 0

    def forward(self, x):
        self.step += self.training
        if self.step == DIES_IN and not int(os.environ.get("RANK", "0")):
            os.kill(os.getpid(), getattr(signal, sys.argv[1]))
        return self.layer(x)


def main():
    several = "RANK" in os.environ
    torch.manual_seed(0)
    model = Net()
    if several:
        dist.init_process_group("gloo")
        model = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(1, STEPS + 1):
        model(torch.randn(2, 4)).square().mean().backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        print(step, norm.item(), flush=True)
        if not several or dist.get_rank() == 0:
            torch.save(model.state_dict(), f"step{step}.pt")


if __name__ == "__main__":
    main()
