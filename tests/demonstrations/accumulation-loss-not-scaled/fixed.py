"""Four micro-batches make one step with the mean of their losses."""

# shows: gradient over that of the whole batch: 1.0
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
batch = torch.randn(16, 4)
model(batch).pow(2).mean().backward()
whole = model.weight.grad.norm().item()
optimizer.zero_grad()
accumulated = 4
for index, part in enumerate(batch.chunk(accumulated)):
    loss = model(part).pow(2).mean()
    (loss / accumulated).backward()
    if (index + 1) % accumulated == 0:
        print("gradient over that of the whole batch:", round(model.weight.grad.norm().item() / whole, 2))
        optimizer.step()
        optimizer.zero_grad()
