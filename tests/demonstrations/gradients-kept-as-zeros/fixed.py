"""Gradients as they should be reset."""

# shows: gradients allocated during the forward pass: 0, the unused layer moved: False
import torch
from torch import nn

torch.manual_seed(0)
layers = nn.ModuleList([nn.Linear(8, 8), nn.Linear(8, 8)])
optimizer = torch.optim.AdamW(layers.parameters(), lr=0.1)
for step in range(3):
    optimizer.zero_grad()
    allocated = sum(parameter.grad is not None for parameter in layers.parameters())
    before = layers[1].weight.clone()
    used = layers if step == 0 else layers[:1]
    sum(layer(torch.randn(4, 8)).square().mean() for layer in used).backward()
    optimizer.step()
moved = not torch.equal(before, layers[1].weight)
print(f"gradients allocated during the forward pass: {allocated}, the unused layer moved: {moved}")
