"""Noisy samples of a few patterns; the noise is drawn where a sample is loaded."""

import torch
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class Patterns(Dataset):
    """Pairs of a noisy pattern and the pattern."""

    def __init__(self, size, width):
        generator = torch.Generator().manual_seed(3)
        self.patterns = torch.randn(8, width, generator=generator)
        self.size = size

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        pattern = self.patterns[index % len(self.patterns)]
        return pattern + 0.3 * torch.randn_like(pattern), pattern


def training_loader(args, rank, world_size, num_workers: int = 0):
    dataset = Patterns(args.samples, args.width)
    sampler = DistributedSampler(dataset, num_replicas=world_size, rank=rank, shuffle=True, seed=args.seed)
    return DataLoader(
        dataset,
        batch_size=args.batch_size,
        sampler=sampler,
        num_workers=num_workers,
        persistent_workers=True,
        prefetch_factor=4,
        timeout=120,
        drop_last=True,
    )


def validation_loader(args):
    return DataLoader(
        Patterns(2 * args.batch_size, args.width),
        batch_size=args.batch_size,
        num_workers=0,
        prefetch_factor=4,
        persistent_workers=True,
    )
