"""A running sum of losses that keeps the graph of every step."""

# shows: autograd nodes alive after 10 steps: [1-9]\d+
import torch
from torch import nn


def nodes_of(graph):
    """The autograd nodes that a node holds on to."""
    seen, waiting = set(), [graph] if graph is not None else []
    while waiting:
        node = waiting.pop()
        if node not in seen:
            seen.add(node)
            waiting += [following for following, _ in node.next_functions if following is not None]
    return seen


def train(model, batches, optimizer):
    total = 0.0
    for batch in batches:
        optimizer.zero_grad()
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()
        total += loss
    return total


torch.manual_seed(0)
network = nn.Linear(8, 1)
total = train(network, [torch.randn(4, 8) for _ in range(10)], torch.optim.SGD(network.parameters(), lr=0.01))
print("autograd nodes alive after 10 steps:", len(nodes_of(total.grad_fn)))
