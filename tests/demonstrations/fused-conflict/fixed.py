"""A fused optimizer by itself."""

# shows: stepped: 2
import torch

model = torch.nn.Linear(2, 2)
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
model(torch.ones(1, 2)).sum().backward()
optimizer.step()
print("stepped:", len(optimizer.state))
