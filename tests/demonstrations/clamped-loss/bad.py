"""A loss above its bound: clamped, it has no gradient."""

# shows: the loss stayed as it was
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
inputs, targets = torch.randn(8, 4), torch.full((8, 1), 50.0)
before = nn.functional.mse_loss(model(inputs), targets).item()
for _ in range(20):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(inputs), targets)
    loss = torch.clamp(loss, max=10.0)
    loss.backward()
    optimizer.step()
after = nn.functional.mse_loss(model(inputs), targets).item()
print("the loss fell" if after < before else "the loss stayed as it was")
