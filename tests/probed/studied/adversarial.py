"""Two networks against each other, with an optimizer each: only one of them fused with the word for it."""

from __future__ import annotations

import sys

import torch
from torch import nn
from torch.nn import functional as F

WORDS = set(sys.argv[1:])


class Both(nn.Module):
    def __init__(self, maker: nn.Module, judge: nn.Module) -> None:
        super().__init__()
        self.maker, self.judge = maker, judge

    def forward(self, noise: torch.Tensor) -> torch.Tensor:
        return self.judge(self.maker(noise))


def turns(both: Both, optimizers: dict[nn.Module, torch.optim.Optimizer]) -> None:
    """Each network is frozen as a whole while the other one steps."""
    for network, optimizer in optimizers.items():
        both.requires_grad_(False)
        network.requires_grad_(True)
        optimizer.zero_grad()
        both(torch.randn(8, 4)).mean().backward()
        optimizer.step()
    both.requires_grad_(True)


def main() -> None:
    torch.manual_seed(0)
    maker = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 8))
    judge = nn.Sequential(nn.Linear(8, 16), nn.LeakyReLU(), nn.Linear(16, 1))
    of_maker = torch.optim.Adam(maker.parameters(), lr=1e-3)  # holds: optimizer-not-fused
    # holds: optimizer-not-fused unless fused
    of_judge = torch.optim.Adam(judge.parameters(), lr=1e-3, fused="fused" in WORDS or None)
    ones, zeros, fixed = torch.ones(8, 1), torch.zeros(8, 1), torch.randn(8, 4)
    both = Both(maker, judge)
    for step in range(14):
        if "turns" in WORDS:
            turns(both, {maker: of_maker, judge: of_judge})
            continue
        of_judge.zero_grad()
        real = F.binary_cross_entropy_with_logits(judge(torch.randn(8, 8)), ones)
        real.backward()
        made = maker(torch.randn(8, 4))
        false = F.binary_cross_entropy_with_logits(judge(made.detach()), zeros)
        false.backward()
        of_judge.step()
        of_maker.zero_grad()
        if "frozen" in WORDS:
            judge.requires_grad_(False)
        loss = F.binary_cross_entropy_with_logits(judge(made), ones)
        loss.backward()
        if "frozen" in WORDS:
            judge.requires_grad_(True)
        of_maker.step()
        if step % 2:
            with torch.no_grad():
                maker(fixed)
            torch.save(maker.state_dict(), f"maker{step}.pt")  # holds: unbounded-checkpoints
            print(f"step {step} {real.item() + false.item():.3f} {loss.item():.3f}")


main()
