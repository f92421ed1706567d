"""Checkpoints of a run: one file per saved step, ``step_<step>.pt``."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler


def save_checkpoint(
    directory: Path,
    step: int,
    epoch: int,
    model: nn.Module,
    optimizer: Optimizer,
    scheduler: LRScheduler,
) -> Path:
    """Write the state after ``step`` optimizer steps and return the file; only rank 0 may call it."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"step_{step}.pt"
    state = {
        "step": step,
        "epoch": epoch,
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "scheduler": scheduler.state_dict(),
    }
    torch.save(state, path)
    return path


def latest_checkpoint(directory: Path) -> Path | None:
    """The checkpoint of the highest step, None where there is none."""
    return max(directory.glob("step_*.pt"), key=lambda path: int(path.stem.removeprefix("step_")), default=None)


def load_checkpoint(path: Path, model: nn.Module, optimizer: Optimizer, scheduler: LRScheduler) -> tuple[int, int]:
    """Restore a run from a file and return its step and epoch."""
    state = torch.load(path, map_location="cpu", weights_only=True)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    scheduler.load_state_dict(state["scheduler"])
    return state["step"], state["epoch"]
