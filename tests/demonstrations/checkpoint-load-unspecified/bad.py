"""A checkpoint with the settings of the run, read without a word on what it may hold."""

# shows: UnpicklingError: Weights only load failed
import argparse

import torch

model = torch.nn.Linear(2, 2)
torch.save({"model": model.state_dict(), "args": argparse.Namespace(step=3)}, "checkpoint.pt")
checkpoint = torch.load("checkpoint.pt")
print("resumes at step", checkpoint["args"].step)
