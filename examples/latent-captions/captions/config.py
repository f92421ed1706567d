"""The configuration of a run: a JSON file, then the command line."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class DataConfig:
    """The synthetic caption corpus and how it is loaded."""

    num_samples: int
    num_scenes: int
    caption_length: int
    vocab_size: int
    latent_dim: int
    latent_noise: float
    num_workers: int


@dataclass(frozen=True)
class ModelConfig:
    """The shape of the caption transformer."""

    hidden_dim: int
    num_heads: int
    num_layers: int
    mlp_ratio: int
    latent_dropout: float


@dataclass(frozen=True)
class OptimizerConfig:
    """AdamW and its warm-up, counted in optimizer steps."""

    learning_rate: float
    weight_decay: float
    beta1: float
    beta2: float
    warmup_steps: int


@dataclass(frozen=True)
class TrainingConfig:
    """The training loop, which ends after ``epochs`` or after ``steps``, whichever comes first.

    ``batch_size`` is per rank and micro-batch; the intervals are optimizer steps.
    """

    epochs: int
    steps: int
    batch_size: int
    accumulation_steps: int
    max_grad_norm: float
    latent_loss_weight: float
    log_every: int
    save_every: int


@dataclass(frozen=True)
class Config:
    """Everything a run depends on, apart from where it runs."""

    seed: int
    data: DataConfig
    model: ModelConfig
    optimizer: OptimizerConfig
    training: TrainingConfig

    @classmethod
    def load(cls, path: Path) -> Config:
        """Read a JSON file; raises TypeError for a key that is missing or unknown."""
        values = json.loads(path.read_text(encoding="utf-8"))
        return cls(
            seed=values["seed"],
            data=DataConfig(**values["data"]),
            model=ModelConfig(**values["model"]),
            optimizer=OptimizerConfig(**values["optimizer"]),
            training=TrainingConfig(**values["training"]),
        )

    def override(self, *, num_workers: int | None = None, **training: int | None) -> Config:
        """A copy with the values of the command line; None keeps what the file says."""
        given = {name: value for name, value in training.items() if value is not None}
        data = self.data if num_workers is None else dataclasses.replace(self.data, num_workers=num_workers)
        return dataclasses.replace(self, data=data, training=dataclasses.replace(self.training, **given))
