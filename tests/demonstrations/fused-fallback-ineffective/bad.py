"""Parameters without fused kernels: the fallback around the constructor is never taken."""

# shows: RuntimeError: `fused=True` requires all the params to be floating point
import torch

weight = torch.nn.Parameter(torch.zeros(2, dtype=torch.complex64))
try:
    optimizer = torch.optim.AdamW([weight], lr=0.1, fused=True)
except RuntimeError:
    optimizer = torch.optim.AdamW([weight], lr=0.1)
weight.grad = torch.ones_like(weight)
optimizer.step()
print("moved:", bool(weight.abs().sum() > 0))
