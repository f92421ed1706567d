"""Digits, as they are learned first: a convolution, two loaders, a schedule per epoch, the average of the loss."""

from __future__ import annotations

import sys
import time

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

WORDS = set(sys.argv[1:])
WORKERS = 1 if WORDS & {"workers", "persistent"} else 0


class SlowRows(TensorDataset):
    """Rows that take longer than the start of a worker does."""

    def __getitem__(self, index: int):
        time.sleep(0.02)
        return super().__getitem__(index)


def slow_start(_: int) -> None:
    time.sleep(0.3)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm, self.out = nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Linear(4 * 36, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(F.relu(self.norm(self.conv(x))).flatten(1))


def train(model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer, scheduler, history: list) -> None:
    model.train()
    total = 0.0
    for index, (x, y) in enumerate(loader):
        optimizer.zero_grad(set_to_none="zeros" not in WORDS)  # holds: gradients-kept-as-zeros if zeros
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        if "kept" in WORDS:
            total = total + loss  # holds: loss-graph-accumulation if kept
        elif "listed" in WORDS:
            history.append(loss)  # holds: loss-graph-accumulation if listed
        elif "detached" in WORDS:
            history.append(loss.detach())
        else:
            total += loss.item()
        if index % 4 == 0:
            print(f"batch {index} loss {loss.item():.4f}")


def test(model: nn.Module, loader: DataLoader) -> None:
    model.eval()
    right = 0
    with torch.set_grad_enabled("eval-grad" in WORDS):
        for x, y in loader:
            right += (model(x).argmax(1) == y).sum().item()  # holds: evaluation-with-gradients if eval-grad
    print("right", right)


def main() -> None:
    torch.manual_seed(0)
    digits = (SlowRows if "slow-rows" in WORDS else TensorDataset)(torch.randn(64, 1, 8, 8), torch.randint(10, (64,)))
    # The sets of data are in memory: whether their workers' starts cost anything is to be measured.
    shared = {"num_workers": WORKERS, "persistent_workers": "persistent" in WORDS}
    if "slow-start" in WORDS:
        # A worker that reads an index first: that of an epoch's eight batches costs more than they do.
        shared["worker_init_fn"] = slow_start
    # open: dataloader-in-main-process unless workers persistent; dataloader-without-persistent-workers if workers unless slow-rows slow-start; dataloader-without-prefetch if workers unless slow-rows; holds: dataloader-without-persistent-workers if slow-start
    learned = DataLoader(digits, batch_size=8, shuffle=True, **shared)
    # open: dataloader-in-main-process unless workers persistent; dataloader-without-persistent-workers if workers unless slow-rows slow-start; dataloader-without-prefetch if workers unless slow-rows; holds: dataloader-without-persistent-workers if slow-start
    tested = DataLoader(digits, batch_size=32, **shared)
    model = Net()
    kind = torch.optim.Adadelta if "adadelta" in WORDS else torch.optim.SGD
    optimizer = kind(model.parameters(), lr=0.1)  # holds: optimizer-not-fused unless adadelta
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.7)
    history: list[torch.Tensor] = []
    for epoch in range(7):
        if "schedule-first" in WORDS:
            scheduler.step()  # holds: scheduler-before-optimizer if schedule-first
        train(model, learned, optimizer, scheduler, history)
        test(model, tested)
        if "schedule-first" not in WORDS:
            scheduler.step()
        if "save-each" in WORDS:
            torch.save(model.state_dict(), f"epoch{epoch}.pt")  # holds: unbounded-checkpoints
        elif "save" in WORDS:
            torch.save(model.state_dict(), "digits.pt")  # holds: non-atomic-checkpoint
    if "save-last" in WORDS:
        torch.save(model.state_dict(), "digits.pt")


main()
