"""A block that takes keywords only is checkpointed with keywords."""

# shows: output: \(2, 4\)
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(4, 4)

    def forward(self, *, hidden):
        return self.mix(hidden)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block()

    def forward(self, hidden):
        return checkpoint(self.block, hidden=hidden, use_reentrant=False)


print("output:", tuple(Model()(torch.ones(2, 4)).shape))
