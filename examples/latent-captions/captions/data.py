"""A synthetic corpus of image latents with captions, and its loader.

An image shows one of a few scenes. Its latent is the centre of the scene plus noise, its caption is the
sentence of the scene with some words replaced by synonyms, so that there is something to learn within seconds.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, DistributedSampler

from captions.config import DataConfig

PAD_TOKEN = 0
MASK_TOKEN = 1
FIRST_WORD = 2


class CaptionDataset(Dataset):
    """Pairs of an image latent and a padded caption, made from the index so that every rank agrees on them."""

    def __init__(self, config: DataConfig, seed: int) -> None:
        self.config = config
        self.seed = seed
        generator = torch.Generator().manual_seed(seed)
        words = (config.num_scenes, config.caption_length)
        self.sentences = torch.randint(FIRST_WORD, config.vocab_size, words, generator=generator)
        self.synonyms = torch.randint(FIRST_WORD, config.vocab_size, words, generator=generator)
        shortest = config.caption_length // 2
        self.lengths = torch.randint(shortest, config.caption_length + 1, (config.num_scenes,), generator=generator)
        self.centres = torch.randn(config.num_scenes, config.latent_dim, generator=generator)

    def __len__(self) -> int:
        return self.config.num_samples

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        generator = torch.Generator().manual_seed(self.seed + index + 1)
        scene = index % self.config.num_scenes
        replaced = torch.rand(self.config.caption_length, generator=generator) < 0.1
        tokens = torch.where(replaced, self.synonyms[scene], self.sentences[scene])
        tokens[self.lengths[scene] :] = PAD_TOKEN
        noise = torch.randn(self.config.latent_dim, generator=generator)
        return {"tokens": tokens, "latent": self.centres[scene] + self.config.latent_noise * noise}


def build_train_loader(config: DataConfig, *, batch_size: int, seed: int, rank: int, world_size: int) -> DataLoader:
    """The training loader of one rank; the sampler deals each rank its own share of the corpus."""
    dataset = CaptionDataset(config, seed)
    sampler = DistributedSampler(dataset, num_replicas=world_size, rank=rank, shuffle=True, seed=seed)
    return DataLoader(
        dataset,
        batch_size=batch_size,
        sampler=sampler,
        num_workers=config.num_workers,
        pin_memory=torch.cuda.is_available(),
        drop_last=True,
    )
