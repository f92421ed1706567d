"""A run resumes from a checkpoint that was written without fused."""

# shows: fused: None
import io

import torch

model = torch.nn.Linear(2, 2)
file = io.BytesIO()
torch.save(torch.optim.AdamW(model.parameters(), lr=0.1).state_dict(), file)
file.seek(0)
checkpoint = torch.load(file, weights_only=True)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, fused=True)
optimizer.load_state_dict(checkpoint)
model(torch.ones(1, 2)).sum().backward()
optimizer.step()
print("fused:", optimizer.param_groups[0].get("fused"))
