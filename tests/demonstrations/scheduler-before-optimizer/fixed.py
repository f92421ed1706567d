"""The scheduler steps after the optimizer."""

# shows: learning rates: \[1.0, 0.5, 0.25\]
import torch

weight = torch.nn.Parameter(torch.zeros(1))
optimizer = torch.optim.SGD([weight], lr=1.0)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
used = []
for _ in range(3):
    optimizer.zero_grad()
    weight.sum().backward()
    used.append(optimizer.param_groups[0]["lr"])
    optimizer.step()
    scheduler.step()
print("learning rates:", used)
