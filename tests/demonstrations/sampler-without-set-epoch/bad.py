"""Three epochs over a DistributedSampler that nobody tells the epoch."""

# shows: different orders: 1\b
import torch
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

torch.manual_seed(0)
dataset = TensorDataset(torch.arange(32.0))
sampler = DistributedSampler(dataset, num_replicas=1, rank=0)
loader = DataLoader(dataset, batch_size=8, sampler=sampler)
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)
orders = set()
for epoch in range(3):
    seen = []
    for (numbers,) in loader:
        optimizer.zero_grad()
        model(numbers).square().mean().backward()
        optimizer.step()
        seen += numbers.tolist()
    orders.add(tuple(seen))
print("different orders:", len(orders))
