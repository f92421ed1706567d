"""One epoch of a stream, read by two workers that do not share it out."""

# shows: samples: 16 of 8\b
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset


class Numbers(IterableDataset):
    def __iter__(self):
        yield from torch.arange(8.0).unsqueeze(1)


if __name__ == "__main__":
    torch.manual_seed(0)
    model = nn.Linear(1, 1)
    seen = []
    for batch in DataLoader(Numbers(), batch_size=4, num_workers=2):
        model(batch).square().mean().backward()
        seen += batch.flatten().tolist()
    print("samples:", len(seen), "of", len(set(seen)))
