"""The checkpoint is the run's own, and the load says so."""

# shows: resumes at step 3
import argparse

import torch

model = torch.nn.Linear(2, 2)
torch.save({"model": model.state_dict(), "args": argparse.Namespace(step=3)}, "checkpoint.pt")
checkpoint = torch.load("checkpoint.pt", weights_only=False)
print("resumes at step", checkpoint["args"].step)
