"""A fused optimizer that is asked for foreach, too."""

# shows: RuntimeError: `fused` and `foreach` cannot be `True` together
import torch

model = torch.nn.Linear(2, 2)
optimizer = torch.optim.AdamW(model.parameters(), fused=True, foreach=True)
model(torch.ones(1, 2)).sum().backward()
optimizer.step()
print("stepped:", len(optimizer.state))
