"""The scheduler steps before the optimizer."""

# shows: learning rates: \[0.5, 0.25, 0.125\]
import torch

weight = torch.nn.Parameter(torch.zeros(1))
optimizer = torch.optim.SGD([weight], lr=1.0)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
used = []
for _ in range(3):
    optimizer.zero_grad()
    weight.sum().backward()
    scheduler.step()
    used.append(optimizer.param_groups[0]["lr"])
    optimizer.step()
print("learning rates:", used)
