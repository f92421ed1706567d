"""Train on the shards of two ranks: ``torchrun --nproc-per-node=2 train.py --epochs 3``."""

import argparse
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--start-epoch", type=int, default=0)
    parser.add_argument("--output", type=Path, default=Path("runs"))
    return parser.parse_args()


def main():
    args = parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    samples = torch.randn(16, 8, generator=torch.Generator().manual_seed(1))
    dataset = TensorDataset(samples, torch.arange(16))
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, batch_size=4, sampler=sampler)

    for epoch in range(args.start_epoch, args.epochs):
        # Each rank takes its own half.
        taken = []
        for batch, indices in loader:
            loss = model(batch).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            taken += indices.tolist()
        args.output.mkdir(exist_ok=True)
        (args.output / f"taken-{epoch}-{rank}").write_text(" ".join(map(str, taken)))
    dist.barrier()
    # DDP first: freed after its group, gloo may wait for a thread that waits for the interpreter's lock (pytorch#56297).
    del model
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
