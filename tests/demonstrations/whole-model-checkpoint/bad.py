"""One segment for a whole stack: its backward holds what all blocks save at once."""

# shows: most saved tensors at a time: [2-9][0-9]
import torch
from torch import nn
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.checkpoint import checkpoint


class Counter:
    held = most = 0

    def __init__(self, tensor):
        self.tensor = tensor
        Counter.held += 1
        Counter.most = max(Counter.most, Counter.held)

    def __del__(self):
        Counter.held -= 1


class Stack(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([nn.Sequential(nn.Linear(4, 4), nn.Tanh()) for _ in range(8)])

    def forward(self, hidden):
        for block in self.blocks:
            hidden = block(hidden)
        return hidden


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.stack = Stack()

    def forward(self, hidden):
        return checkpoint(self.stack, hidden, use_reentrant=True)


with saved_tensors_hooks(Counter, lambda counter: counter.tensor):
    Model()(torch.ones(2, 4, requires_grad=True)).sum().backward()
print("most saved tensors at a time:", Counter.most)
