"""Parameters without fused kernels: the type decides beforehand."""

# shows: moved: True
import torch

weight = torch.nn.Parameter(torch.zeros(2, dtype=torch.complex64))
optimizer = torch.optim.AdamW([weight], lr=0.1, fused=weight.is_floating_point())
weight.grad = torch.ones_like(weight)
optimizer.step()
print("moved:", bool(weight.abs().sum() > 0))
