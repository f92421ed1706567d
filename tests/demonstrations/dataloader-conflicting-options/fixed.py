"""A sampler and shuffling exclude each other; here the sampler shuffles."""

# shows: batches: 2
import torch
from torch.utils.data import DataLoader, RandomSampler, TensorDataset

dataset = TensorDataset(torch.arange(8))
loader = DataLoader(dataset, batch_size=4, sampler=RandomSampler(dataset))
print("batches:", len(list(loader)))
