"""Trains with micro-batches, a gradient scaler, clipping and a schedule; prints what each step was taken with."""

import argparse

import torch
from torch import nn


def batches_of(count, merged):
    generator = torch.Generator().manual_seed(1)
    for _ in range(count // merged):
        pieces = [torch.randn(8, 16, generator=generator) for _ in range(merged)]
        batch = torch.cat(pieces)
        yield batch, batch.sum(dim=1, keepdim=True).sin()


def train(model, batches, optimizer, scheduler, scaler, accumulate):
    step = 0
    for i, (batch, target) in enumerate(batches):
        loss = nn.functional.mse_loss(model(batch), target)
        scaler.scale(loss).backward()
        if (i + 1) % accumulate == 0:
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            rate = optimizer.param_groups[0]["lr"]
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
            step += 1
            print(f"step {step} loss {loss.item().hex()}")
            print(f"norm {norm.item():.6f} rate {rate:.6f}")
        scheduler.step()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--accumulate", type=int, default=4)
    parser.add_argument("--merged", type=int, default=1)
    args = parser.parse_args()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    train(model, batches_of(80, args.merged), optimizer, scheduler, scaler, args.accumulate)
    torch.save(model.state_dict(), "last.pt")


if __name__ == "__main__":
    main()
