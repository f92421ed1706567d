"""Train a small denoiser: ``python train.py --steps 20 --output runs/base``."""

import argparse
import json
import os
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.cuda.amp import GradScaler
from torch.nn.parallel import DistributedDataParallel

from data import training_loader, validation_loader


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", type=Path, default=Path("runs/base"))
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--samples", type=int, default=64)
    parser.add_argument("--batch-size", type=int, default=4)
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--num-workers", type=int, default=0)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--validate", action="store_true")
    return parser.parse_args()


def build_model(width):
    return nn.Sequential(nn.Linear(width, 64), nn.GELU(), nn.Dropout(0.1), nn.Linear(64, width))


@torch.no_grad()
def validate(model, args):
    model.eval()
    errors = [(model(noisy) - clean).square().mean().item() for noisy, clean in validation_loader(args)]
    model.train()
    return sum(errors) / len(errors)


def train(args, rank, world_size):
    torch.manual_seed(args.seed)
    model = build_model(args.width)
    if dist.is_initialized():
        model = DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    scaler = GradScaler(enabled=False)
    loader = training_loader(args, rank, world_size, args.num_workers)
    torch.manual_seed(args.seed + rank)
    history, means, step = [], [], 0
    for epoch in range(args.steps):
        loader.sampler.set_epoch(epoch)
        total = torch.zeros(())
        for noisy, clean in loader:
            with torch.cpu.amp.autocast(dtype=torch.bfloat16):
                predicted = model(noisy)
            with torch.cuda.amp.autocast(enabled=False):
                loss = (predicted.float() - clean).square().mean()
            optimizer.zero_grad()
            loss.backward()
            scaler.step(optimizer)
            scaler.update()
            total += loss
            step += 1
            history.append(loss.detach().to("cpu", torch.bfloat16, non_blocking=True).item())
            if rank == 0:
                print(f"step {step} loss {loss.item().hex()}", flush=True)
            if step == args.steps:
                break
        means.append((total / len(loader)).item())
        if step == args.steps:
            break
    return model, optimizer, {"history": history, "means": means}


def main():
    args = parse_args()
    if "WORLD_SIZE" in os.environ:
        dist.init_process_group("gloo")
    rank = dist.get_rank() if dist.is_initialized() else 0
    world_size = dist.get_world_size() if dist.is_initialized() else 1
    model, optimizer, metrics = train(args, rank, world_size)
    if args.validate:
        metrics["validation"] = validate(model, args)
    args.output.mkdir(parents=True, exist_ok=True)
    (args.output / f"metrics-{rank}.json").write_text(json.dumps(metrics))
    if rank == 0:
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, args.output / "last.pt")
    if dist.is_initialized():
        dist.barrier()
        # DDP first: freed after its group, gloo may wait for a thread that waits for the interpreter's lock (pytorch#56297).
        del model
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
