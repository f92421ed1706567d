"""The scheduler steps for every micro-batch."""

# shows: after 10 optimizer steps: 0.0625
import torch

weight = torch.nn.Parameter(torch.zeros(1))
optimizer = torch.optim.SGD([weight], lr=1.0)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=10, gamma=0.5)
accumulated = 4
for index in range(10 * accumulated):
    (weight.sum() / accumulated).backward()
    if (index + 1) % accumulated == 0:
        optimizer.step()
        optimizer.zero_grad()
    scheduler.step()
print("after 10 optimizer steps:", optimizer.param_groups[0]["lr"])
