"""A loader without workers as it should be."""

# shows: batches: 2
import torch
from torch.utils.data import DataLoader, TensorDataset

dataset = TensorDataset(torch.arange(8))
loader = DataLoader(dataset, batch_size=4, num_workers=0)
print("batches:", len(list(loader)))
