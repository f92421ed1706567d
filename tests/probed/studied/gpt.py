"""A small GPT on random words: batches cut by hand, micro-batches, an estimate of the loss, one file of its best state."""

from __future__ import annotations

import math
import os
import sys

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

WORDS = set(sys.argv[1:])
WIDTH, HEADS, LENGTH, BATCH, VOCABULARY = 16, 2, 8, 4, 32
STEPS, MICRO, EVERY = 40, 2, 5


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (one.unflatten(-1, (HEADS, -1)).transpose(1, 2) for one in self.qkv(x).chunk(3, -1))
        if "by-hand" in WORDS:
            scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
            scores = scores.masked_fill(torch.ones(LENGTH, LENGTH).tril() == 0, -math.inf)
            y = F.softmax(scores, dim=-1) @ v  # holds: unfused-attention
        else:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).flatten(-2))


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.attention, self.mlp = nn.LayerNorm(WIDTH), Attention(), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm(x))
        return x + F.gelu(self.mlp(x))


class GPT(nn.Module):  # holds: missing-activation-checkpointing unless checkpoint
    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(3))
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, words: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        x = self.words(words) + self.places.weight
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if "checkpoint" in WORDS else block(x)
        return F.cross_entropy(self.head(x).flatten(0, 1), targets.flatten())


def batch(data: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    starts = torch.randint(len(data) - LENGTH, (BATCH,))
    return torch.stack([data[i : i + LENGTH] for i in starts]), torch.stack(
        [data[i + 1 : i + 1 + LENGTH] for i in starts]
    )


@torch.set_grad_enabled("eval-grad" in WORDS)
def estimate(model: GPT, data: torch.Tensor) -> float:
    model.eval()
    total = 0.0
    for _ in range(2):
        total += model(*batch(data)).item()  # holds: evaluation-with-gradients if eval-grad
    model.train()
    return total / 2


def main() -> None:
    torch.manual_seed(0)
    data = torch.randint(VOCABULARY, (400,))
    model = GPT()
    optimizer = torch.optim.AdamW(  # holds: optimizer-not-fused unless fused
        model.parameters(), lr=1e-3, fused="fused" in WORDS or None
    )
    start, best = 0, math.inf
    if "resume" in WORDS and os.path.exists("ckpt.pt"):
        state = torch.load("ckpt.pt")
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        start = state["step"]
    for step in range(start, start + STEPS):
        if step % EVERY == 0:
            best = min(best, estimate(model, data))
            if step:
                state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step, "best": best}
                if "atomic" in WORDS:
                    torch.save(state, "ckpt.pt.tmp")
                    os.replace("ckpt.pt.tmp", "ckpt.pt")
                else:
                    torch.save(state, "ckpt.pt")  # holds: non-atomic-checkpoint
        for _ in range(MICRO):
            loss = model(*batch(data)) / MICRO
            loss.backward(retain_graph="retain" in WORDS)  # holds: graph-retained-on-backward if retain
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        print(f"step {step} loss {loss.item() * MICRO:.4f}")


main()
