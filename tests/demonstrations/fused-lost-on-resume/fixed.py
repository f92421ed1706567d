"""A run resumes from a checkpoint that was written without fused, and sets it in there first."""

# shows: fused: True
import torch

model = torch.nn.Linear(2, 2)
checkpoint = torch.optim.AdamW(model.parameters(), lr=0.1).state_dict()
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, fused=True)
for group in checkpoint["param_groups"]:
    group["fused"] = True
optimizer.load_state_dict(checkpoint)
print("fused:", optimizer.param_groups[0].get("fused"))
