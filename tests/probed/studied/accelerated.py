"""A training with accelerate: micro-batches it counts, clipped gradients, checkpoints with a limit or without."""

from __future__ import annotations

import sys

import torch
from accelerate import Accelerator
from accelerate.utils import ProjectConfiguration, set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

WORDS = set(sys.argv[1:])


def main() -> None:
    set_seed(0)
    kept = None if "unlimited" in WORDS else 2
    accelerator = Accelerator(
        cpu=True,
        gradient_accumulation_steps=2 if "micro" in WORDS else 1,
        mixed_precision="bf16" if "bf16" in WORDS else "no",
        project_config=ProjectConfiguration("out", automatic_checkpoint_naming=True, total_limit=kept),
    )
    data = TensorDataset(torch.randn(64, 8), torch.randn(64, 1))
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    # holds: optimizer-not-fused unless fused
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused="fused" in WORDS or None)
    loader = DataLoader(data, batch_size=8)  # open: dataloader-in-main-process
    values = DataLoader(data, batch_size=32)  # open: dataloader-in-main-process
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 100)
    # open: dataloader-in-main-process
    model, optimizer, loader, values, scheduler = accelerator.prepare(model, optimizer, loader, values, scheduler)
    for epoch in range(7):
        for x, y in loader:
            with accelerator.accumulate(model):
                loss = (model(x) - y).square().mean()
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
        model.eval()
        with torch.no_grad():
            total = sum((model(x) - y).square().mean().item() for x, y in values)
        model.train()
        accelerator.save_state()  # holds: unbounded-checkpoints if unlimited
        accelerator.print(f"epoch {epoch} value {total:.4f}")


main()
