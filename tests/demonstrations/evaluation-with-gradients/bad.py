"""An evaluation in evaluation mode that still saves activations for a backward pass."""

# shows: saved for a backward pass: [1-9]\d*
import torch
from torch import nn

saved = []


def remember(tensor):
    saved.append(tensor.numel())
    return tensor


def validate(model, loader):
    model.eval()
    total = 0.0
    for batch in loader:
        total += model(batch).detach().mean().item()
    return total


torch.manual_seed(0)
network = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))
with torch.autograd.graph.saved_tensors_hooks(remember, lambda tensor: tensor):
    validate(network, [torch.randn(4, 8) for _ in range(3)])
print("saved for a backward pass:", len(saved))
