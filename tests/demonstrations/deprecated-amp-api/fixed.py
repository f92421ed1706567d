"""The new autocast takes the device first, and does not warn."""

# shows: torch.bfloat16 warnings: 0
import warnings

import torch

with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always", FutureWarning)
    scaler = torch.amp.GradScaler("cuda", enabled=False)
    with torch.amp.autocast("cpu", dtype=torch.bfloat16, enabled=True):
        product = torch.ones(2, 2) @ torch.ones(2, 2)
print(product.dtype, "warnings:", sum(issubclass(one.category, FutureWarning) for one in seen))
