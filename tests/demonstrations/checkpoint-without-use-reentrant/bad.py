"""A checkpointed block behind a frozen embedding gets no gradients from the default implementation."""

# shows: 4 parameters of the block have no gradient
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

embedding = nn.Embedding(16, 8).requires_grad_(False)
block = nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 8))
head = nn.Linear(8, 1)
hidden = checkpoint(block, embedding(torch.arange(16)))
head(hidden).mean().backward()
missing = [name for name, parameter in block.named_parameters() if parameter.grad is None]
print(f"{len(missing)} parameters of the block have no gradient")
