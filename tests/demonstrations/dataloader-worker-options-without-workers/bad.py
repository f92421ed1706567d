"""A loader without workers is given an option of workers."""

# shows: ValueError: persistent_workers option needs num_workers > 0
import torch
from torch.utils.data import DataLoader, TensorDataset

dataset = TensorDataset(torch.arange(8))
loader = DataLoader(dataset, batch_size=4, num_workers=0, persistent_workers=True)
print("batches:", len(list(loader)))
