"""Classify small images from files: ``python train.py --workers 2 --epochs 3``."""

import argparse
import multiprocessing
import os
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset, DistributedSampler, RandomSampler


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--order", choices=["by-epoch", "by-state"], default="by-epoch")
    parser.add_argument("--resume", type=Path)
    parser.add_argument("--output", type=Path, default=Path("runs"))
    return parser.parse_args()


class Images(Dataset):
    """Files of bytes, which are read and turned into a tensor item by item."""

    def __init__(self, folder, count):
        self.paths = [folder / f"{index}.raw" for index in range(count)]

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        data = torch.frombuffer(bytearray(self.paths[index].read_bytes()), dtype=torch.uint8)
        return data.float() / 255, index % 4, index, os.getpid()


def write_images(folder, count):
    folder.mkdir(parents=True, exist_ok=True)
    generator = torch.Generator().manual_seed(5)
    for index in range(count):
        pixels = torch.randint(0, 256, (48,), generator=generator, dtype=torch.uint8)
        (folder / f"{index}.raw").write_bytes(bytes(pixels.tolist()))


def make_loaders(args, train_set, val_set):
    if args.order == "by-epoch":
        sampler = DistributedSampler(train_set, num_replicas=1, rank=0)
    else:
        sampler = RandomSampler(train_set)
    train_loader = DataLoader(train_set, batch_size=4, sampler=sampler, num_workers=args.workers, drop_last=True)
    val_loader = DataLoader(
        val_set,
        batch_size=8,
        num_workers=args.workers,  # as many as for the training
        shuffle=False,
    )
    return train_loader, val_loader


def evaluate(model, loader, device):
    model.eval()
    right = 0
    with torch.no_grad():
        for images, labels, _, _ in loader:
            right += (model(images.to(device)).argmax(1) == labels.to(device)).sum().item()
    model.train()
    return right


def main():
    args = parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    args.output.mkdir(parents=True, exist_ok=True)
    write_images(Path("images"), 40)
    train_set, val_set = Images(Path("images"), 24), Images(Path("images"), 40)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(48, 16), nn.ReLU(), nn.Linear(16, 4)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    step, first = 0, 0
    if args.resume:
        state = torch.load(args.resume, map_location=device, weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        step, first = state["step"], state["epoch"]
    train_loader, val_loader = make_loaders(args, train_set, val_set)
    for epoch in range(first, args.epochs):
        if args.order == "by-epoch":
            train_loader.sampler.set_epoch(epoch)
        for images, labels, indices, pids in train_loader:
            loss = F.cross_entropy(model(images.to(device)), labels.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            print(f"step {step} loss {loss.item().hex()}")
            print(f"epoch {epoch} took {indices.tolist()} from {sorted(set(pids.tolist()))}")
        print(f"epoch {epoch} right {evaluate(model, val_loader, device)}")
    print(f"workers left {len(multiprocessing.active_children())}")
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step, "epoch": args.epochs}
    torch.save(state, args.output / "last.pt")


if __name__ == "__main__":
    main()
