"""Gradients that stay allocated between the steps, and that move a parameter which takes no part."""

# shows: gradients allocated during the forward pass: 4, the unused layer moved: True
import torch
from torch import nn

torch.manual_seed(0)
layers = nn.ModuleList([nn.Linear(8, 8), nn.Linear(8, 8)])
optimizer = torch.optim.AdamW(layers.parameters(), lr=0.1)
for step in range(3):
    optimizer.zero_grad(set_to_none=False)
    allocated = sum(parameter.grad is not None for parameter in layers.parameters())
    before = layers[1].weight.clone()
    used = layers if step == 0 else layers[:1]
    sum(layer(torch.randn(4, 8)).square().mean() for layer in used).backward()
    optimizer.step()
moved = not torch.equal(before, layers[1].weight)
print(f"gradients allocated during the forward pass: {allocated}, the unused layer moved: {moved}")
