"""The older flag is read after the newer one was set."""

# shows: RuntimeError: .*mix of the legacy and new APIs
import torch

torch.backends.cuda.matmul.fp32_precision = "tf32"
print("TF32:", torch.backends.cuda.matmul.allow_tf32)
