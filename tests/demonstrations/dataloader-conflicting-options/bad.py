"""A sampler and shuffling exclude each other; here both are given."""

# shows: ValueError: sampler option is mutually exclusive with shuffle
import torch
from torch.utils.data import DataLoader, RandomSampler, TensorDataset

dataset = TensorDataset(torch.arange(8))
loader = DataLoader(dataset, batch_size=4, sampler=RandomSampler(dataset), shuffle=True)
print("batches:", len(list(loader)))
