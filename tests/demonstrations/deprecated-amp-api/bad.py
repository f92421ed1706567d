"""The old autocast warns, and renaming it alone is a wrong call: its first argument was ``enabled``."""

# shows: renamed alone: TypeError[\s\S]*warnings: 2
import warnings

import torch

with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always", FutureWarning)
    scaler = torch.cuda.amp.GradScaler(enabled=False)
    with torch.cpu.amp.autocast(True):
        product = torch.ones(2, 2) @ torch.ones(2, 2)
try:
    torch.amp.autocast(True)
except Exception as error:
    print("renamed alone:", "TypeError" if isinstance(error, (TypeError, ValueError)) else type(error).__name__)
print(product.dtype, "warnings:", sum(issubclass(one.category, FutureWarning) for one in seen))
