"""A run resumes from a checkpoint that was written without fused."""

# shows: fused: None
import torch

model = torch.nn.Linear(2, 2)
checkpoint = torch.optim.AdamW(model.parameters(), lr=0.1).state_dict()
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, fused=True)
optimizer.load_state_dict(checkpoint)
print("fused:", optimizer.param_groups[0].get("fused"))
