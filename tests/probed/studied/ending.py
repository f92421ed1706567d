"""Trainings that end otherwise than by returning, after a few steps."""

from __future__ import annotations

import os
import sys

import torch
from torch import nn

WORDS = set(sys.argv[1:])


def main() -> None:
    torch.manual_seed(0)
    model = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)  # holds: optimizer-not-fused
    for step in range(12):
        loss = model(torch.ones(4, 8)).square().mean()
        optimizer.zero_grad(set_to_none=False)  # holds: gradients-kept-as-zeros
        loss.backward()
        optimizer.step()
        if step == 6:
            torch.save(model.state_dict(), "last.pt")
        if step == 8 and "exit" in WORDS:
            sys.exit(1)
        if step == 8 and "raise" in WORDS:
            raise ValueError("the data ended")
        if step == 8 and "hard" in WORDS:
            os._exit(3)


main()
