"""A training as it should be."""

# shows: stack traces recorded in a step: 0
import torch
from torch import nn


def traces(loss):
    """How many operations of a graph know the Python stack that called them."""
    found, waiting = 0, [loss.grad_fn]
    while waiting:
        node = waiting.pop()
        found += "traceback_" in node.metadata
        waiting += [following for following, _ in node.next_functions if following is not None]
    return found


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
loss = model(torch.randn(4, 8)).mean()
count = traces(loss)
optimizer.zero_grad()
loss.backward()
optimizer.step()
print("stack traces recorded in a step:", count)
