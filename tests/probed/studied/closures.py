"""Optimizers that call the program back: LBFGS, and AdamW with a closure."""

from __future__ import annotations

import sys

import torch
from torch import nn

WORDS = set(sys.argv[1:])


def main() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
    x, y = torch.randn(32, 8), torch.randn(32, 1)
    if "lbfgs" in WORDS:
        optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=4)
    else:
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)  # holds: optimizer-not-fused
    seen: list[float] = []
    kept: list[torch.Tensor] = []

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = (model(x) - y).square().mean()
        loss.backward()
        if "reads" in WORDS:
            seen.append(loss.item())  # on-cuda: host-sync-in-training-loop
        if "kept" in WORDS:
            kept.append(loss)  # holds: loss-graph-accumulation
        return loss

    for step in range(14):
        loss = optimizer.step(closure)
        if "outside" in WORDS:
            print(f"step {step} loss {loss.item():.4f}")  # on-cuda: host-sync-in-training-loop


main()
