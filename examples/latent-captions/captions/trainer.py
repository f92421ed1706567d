"""The training loop: epochs over the corpus, gradient accumulation, logs and checkpoints."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor, nn

from captions import distributed
from captions.checkpoints import latest_checkpoint, load_checkpoint, save_checkpoint
from captions.config import Config
from captions.data import PAD_TOKEN, build_train_loader
from captions.distributed import Runtime
from captions.loss import latent_loss, mask_words, word_loss
from captions.model import CaptionTransformer
from captions.optimizer import build_optimizer, build_scheduler


class Trainer:
    """Trains one model on one rank; all ranks take the same steps."""

    def __init__(self, config: Config, runtime: Runtime, output: Path) -> None:
        self.config = config
        self.runtime = runtime
        self.output = output
        self.step = 0
        self.epoch = 0
        self.loader = build_train_loader(
            config.data,
            batch_size=config.training.batch_size,
            seed=config.seed,
            rank=runtime.rank,
            world_size=runtime.world_size,
        )
        torch.manual_seed(config.seed)
        self.model: nn.Module = CaptionTransformer(config.model, config.data).to(runtime.device)
        self.ddp_model = distributed.wrap(self.model, runtime)
        self.optimizer = build_optimizer(self.model, config.optimizer)
        self.scheduler = build_scheduler(self.optimizer, config.optimizer, config.training.steps)
        # The ranks start from one model but must not draw the same masks.
        torch.manual_seed(config.seed + runtime.rank)

    def resume(self) -> None:
        """Go on from the latest checkpoint of the output directory, if it holds one; its epoch starts again."""
        path = latest_checkpoint(self.output)
        if path is not None:
            self.step, self.epoch = load_checkpoint(path, self.model, self.optimizer, self.scheduler)
            self.print(f"resumed from {path}")

    def print(self, message: str) -> None:
        """Print on the main rank only."""
        if self.runtime.is_main:
            print(message, flush=True)

    def compute_loss(self, batch: dict[str, Tensor]) -> Tensor:
        """The loss of one micro-batch, on the device."""
        tokens = batch["tokens"].to(self.runtime.device, non_blocking=True)
        latents = batch["latent"].to(self.runtime.device, non_blocking=True)
        inputs, masked = mask_words(tokens)
        with torch.autocast(self.runtime.device.type, dtype=torch.bfloat16, enabled=torch.cuda.is_available()):
            logits, predicted = self.ddp_model(inputs, latents, tokens != PAD_TOKEN)
        weight = self.config.training.latent_loss_weight
        return word_loss(logits, tokens, masked) + weight * latent_loss(predicted, latents)

    def optimizer_steps(self) -> Iterator[Tensor]:
        """Run epochs until the last step; yield the mean loss of each optimizer step, on the device.

        Micro-batches at the end of an epoch that do not fill an optimizer step are dropped.
        """
        training = self.config.training
        if self.step >= training.steps:
            return
        for epoch in range(self.epoch, training.epochs):
            self.epoch = epoch
            self.loader.sampler.set_epoch(epoch)
            self.optimizer.zero_grad()
            step_loss = torch.zeros((), device=self.runtime.device)
            for index, batch in enumerate(self.loader, start=1):
                loss = self.compute_loss(batch) / training.accumulation_steps
                loss.backward()
                step_loss += loss.detach()
                if index % training.accumulation_steps != 0:
                    continue
                nn.utils.clip_grad_norm_(self.model.parameters(), training.max_grad_norm)
                self.optimizer.step()
                self.scheduler.step()
                self.optimizer.zero_grad()
                self.step += 1
                yield step_loss
                step_loss = torch.zeros_like(step_loss)
                if self.step >= training.steps:
                    return

    def save(self) -> None:
        """Write a checkpoint of this step, on the main rank only."""
        if self.runtime.is_main:
            save_checkpoint(self.output, self.step, self.epoch, self.model, self.optimizer, self.scheduler)

    def train(self) -> None:
        """Train to the last step, with a line of progress and a checkpoint every so many steps."""
        training = self.config.training
        samples_per_step = training.batch_size * training.accumulation_steps * self.runtime.world_size
        interval_loss = torch.zeros((), device=self.runtime.device)
        started = time.perf_counter()
        for step_loss in self.optimizer_steps():
            interval_loss += step_loss
            if self.step % training.log_every == 0:
                seconds = time.perf_counter() - started
                self.print(
                    f"step {self.step:6d}  epoch {self.epoch:3d}  loss {interval_loss.item() / training.log_every:.4f}"
                    f"  lr {self.scheduler.get_last_lr()[0]:.2e}"
                    f"  samples/s {samples_per_step * training.log_every / seconds:.0f}"
                )
                interval_loss = torch.zeros_like(interval_loss)
                started = time.perf_counter()
            if self.step % training.save_every == 0:
                self.save()
        if self.step % training.save_every != 0:
            self.save()
