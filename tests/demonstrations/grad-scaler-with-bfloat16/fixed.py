"""bfloat16 keeps the small gradients by itself, and the scaler is off.

A CPU scaler takes the same steps as that of CUDA, whose checks wait for the device.
"""

# shows: lost without scaling: 0, scaled by 1\b
import torch

device = torch.device("cpu")
model = torch.nn.Linear(64, 1, device=device)
optimizer = torch.optim.Rprop(model.parameters())
scaler = torch.amp.GradScaler("cpu", enabled=False)


def loss_of(factor):
    with torch.autocast(device.type, dtype=torch.bfloat16):
        return model(torch.ones(8, 64)).mean() * factor


loss_of(1e-8).backward()
lost = int((model.weight.grad == 0).sum())
optimizer.zero_grad()
loss = loss_of(1e-8)
scaler.scale(loss).backward()
scaler.step(optimizer)
print(f"lost without scaling: {lost}, scaled by {scaler.get_scale():.0f}")
