"""One interface for all."""

# shows: TF32: tf32
import torch

torch.backends.cuda.matmul.fp32_precision = "tf32"
print("TF32:", torch.backends.cuda.matmul.fp32_precision)
