"""A segment for each block: the backward holds what one block saves at a time."""

# shows: most saved tensors at a time: 1?[0-9]\b
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
            hidden = checkpoint(block, hidden, use_reentrant=True)
        return hidden


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.stack = Stack()

    def forward(self, hidden):
        return self.stack(hidden)


with saved_tensors_hooks(Counter, lambda counter: counter.tensor):
    Model()(torch.ones(2, 4, requires_grad=True)).sum().backward()
print("most saved tensors at a time:", Counter.most)
