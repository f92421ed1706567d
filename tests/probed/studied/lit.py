"""A small module under Lightning's Trainer: automatic or manual optimisation, checkpoints, losses that are kept."""

from __future__ import annotations

import sys

import lightning.pytorch as pl
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

WORDS = set(sys.argv[1:])


class Module(pl.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
        self.other = nn.Linear(1, 1)
        self.kept: list[torch.Tensor] = []
        self.numbers: list[torch.Tensor | float] = []
        self.automatic_optimization = not WORDS & {"manual", "two"}

    def training_step(self, batch, index):
        x, y = batch
        loss = (self.net(x) - y).square().mean()
        if "reads" in WORDS:
            self.numbers.append(loss.item())  # on-cuda: host-sync-in-training-loop
        if "kept" in WORDS:
            self.kept.append(loss)  # holds: loss-graph-accumulation
        if "detached" in WORDS:
            self.numbers.append(loss.detach())
        if "two" in WORDS:
            return self.one_after_the_other(loss)
        if "manual" in WORDS:
            optimizer = self.optimizers()
            optimizer.zero_grad()
            self.manual_backward(loss)
            optimizer.step()
        self.log("loss", loss)
        return loss

    def one_after_the_other(self, loss):
        """Two networks, each of which is frozen as a whole while the other one learns."""
        for optimizer in self.optimizers():
            self.toggle_optimizer(optimizer)
            optimizer.zero_grad()
            self.manual_backward(self.other(self.net(torch.ones(4, 8))).square().mean())
            optimizer.step()
            self.untoggle_optimizer(optimizer)

    def validation_step(self, batch, index):
        x, y = batch
        self.log("value", (self.net(x) - y).square().mean())

    def configure_optimizers(self):
        if "two" in WORDS:
            parts = self.net.parameters(), self.other.parameters()
            return [torch.optim.RMSprop(one, lr=1e-3) for one in parts]
        kind = torch.optim.Adam if "adam" in WORDS else torch.optim.AdamW
        # holds: optimizer-not-fused unless fused
        return kind(self.net.parameters(), lr=1e-2, fused="fused" in WORDS or None)


def main() -> None:
    pl.seed_everything(0)
    data = TensorDataset(torch.randn(64, 8), torch.randn(64, 1))
    loader = DataLoader(data, batch_size=8)  # open: dataloader-in-main-process
    keep = -1 if "all" in WORDS else 1
    callbacks = []
    if WORDS & {"all", "best"}:
        # holds: unbounded-checkpoints if all
        saver = ModelCheckpoint("out", monitor="loss", save_top_k=keep, every_n_train_steps=2, filename="{step}")
        callbacks.append(saver)
    trainer = pl.Trainer(
        max_epochs=6,
        accelerator="cpu",
        callbacks=callbacks,
        accumulate_grad_batches=2 if "micro" in WORDS else 1,
        enable_checkpointing=bool(callbacks),
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        log_every_n_steps=1,
    )
    values = DataLoader(data, batch_size=32) if "validate" in WORDS else None
    trainer.fit(Module(), loader, values)  # holds: unbounded-checkpoints if all


main()
