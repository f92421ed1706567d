"""Fit a small network, and look at what it predicts: ``python train.py --steps 20``."""

import argparse
import json
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--output", type=Path, default=Path("runs"))
    return parser.parse_args()


def batches(steps):
    generator = torch.Generator().manual_seed(2)
    for _ in range(steps):
        inputs = torch.randn(8, 16, generator=generator)
        yield inputs, inputs.sum(1, keepdim=True)


def train(model, optimizer, steps):
    total, parts, best = torch.zeros(()), [], 1e9
    recent = []
    for step, (inputs, targets) in enumerate(batches(steps), 1):
        loss = F.mse_loss(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss
        recent.append(loss)
        print(f"step {step} loss {loss.item().hex()}")
        if step % 5 == 0:
            mean = sum(recent) / len(recent)
            if mean < best:
                best = mean
            parts.append(torch.stack(recent).mean().item())
            print(f"mean {mean:.6f}, best {best:.6f}, last {recent[-1]:.6f}, sum {'%.5f' % total}")
            recent.clear()
    print("in all {:.6f}".format(total / steps))
    return [*parts, float(total)]


def evaluate(model, steps):
    model.eval()
    errors = []
    for inputs, targets in batches(steps):
        errors.append((model(inputs) - targets).abs().mean().item())
    model.train()
    return errors


def main():
    args = parse_args()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Dropout(0.1), nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    metrics = train(model, optimizer, args.steps)
    errors = evaluate(model, args.steps)
    args.output.mkdir(parents=True, exist_ok=True)
    (args.output / "metrics.json").write_text(json.dumps([metrics, errors]))
    torch.save(model.state_dict(), args.output / "last.pt")


if __name__ == "__main__":
    main()
