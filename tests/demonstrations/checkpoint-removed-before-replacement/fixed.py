"""The disk is full, and the best checkpoint is still there."""

# shows: checkpoints that load: 1
import os
from pathlib import Path

import torch


class Settings:
    """The disk is full when the second checkpoint is written."""

    def __init__(self, step):
        self.step = step

    def __reduce__(self):
        if self.step == 2:
            raise OSError("no space left on device")
        return dict, ()


def save_best(state, best, path):
    torch.save(state, path)
    if best is not None:
        os.remove(best)
    best = path
    return best


def train():
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    best = None
    for step in (1, 2):
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        best = save_best({"model": model.state_dict(), "settings": Settings(step)}, best, f"best_{step}.pt")


def loads(path):
    try:
        return bool(torch.load(path, weights_only=False)["model"])
    except (RuntimeError, EOFError):
        return False


try:
    train()
except OSError as error:
    print("the run ends:", error)
print("checkpoints that load:", sum(map(loads, Path().glob("best_*.pt"))))
