"""A small project as an editor sees it: a finding for each kind of file, one that rests on another file, a safe fix."""

DATA = """\
from torch.utils.data import DataLoader


def make_loader(dataset, sampler):
    return DataLoader(dataset, batch_size=32, sampler=sampler, num_workers=4, pin_memory=True)
"""
TRAIN = """\
import torch

from data import make_loader


def train(model, optimizer, dataset, sampler, epochs):
    loader = make_loader(dataset, sampler)
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        for images, labels in loader:
            loss = model(images.cuda(), labels)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
"""
# Two signs outside of the basic plane stand before the finding, which UTF-16 counts as four.
AMP = """\
import torch


def step(name, loss, optimizer):
    print("🙂🙂", name); scaler = torch.cuda.amp.GradScaler()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
"""
AMP_FIXED = AMP.replace("torch.cuda.amp.GradScaler()", 'torch.amp.GradScaler("cuda")')
SCRIPT = """\
#!/bin/bash
export NCCL_ASYNC_ERROR_HANDLING=1
torchrun --nproc_per_node=8 train.py
"""
PYPROJECT = '[tool.ldlm-lint]\ntarget-torch = "2.6"\n'
FILES = {"data.py": DATA, "train.py": TRAIN, "amp.py": AMP, "run.sh": SCRIPT, "pyproject.toml": PYPROJECT}
