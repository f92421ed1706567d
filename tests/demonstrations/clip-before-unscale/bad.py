"""Gradients are clipped before the loss scale is taken off."""

# shows: almost nothing moved
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
scaler = torch.amp.GradScaler("cpu", init_scale=65536.0)
before = model.weight.detach().clone()
scaler.scale((10 * model(torch.randn(8, 4))).pow(2).mean()).backward()
torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
scaler.step(optimizer)
scaler.update()
moved = (model.weight.detach() - before).norm().item()
print("almost nothing moved" if moved < 1e-3 else "the step has the size of the limit")
