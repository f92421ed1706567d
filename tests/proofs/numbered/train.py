"""Trains a small network, with a numbered checkpoint every second step, and goes on from one with --resume."""

import argparse
import os
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def save_checkpoint(model, optimizer, output, step):
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
    torch.save(state, f"{output}/step_{step}.pt")
    latest = Path(output, "latest.tmp")
    latest.symlink_to(f"step_{step}.pt")
    os.replace(latest, Path(output, "latest"))


def batch_of(step, rank):
    generator = torch.Generator().manual_seed(1000 * rank + step)
    inputs = torch.randn(16, 32, generator=generator)
    return inputs, inputs.sum(dim=1, keepdim=True).sin()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", default="runs")
    parser.add_argument("--steps", type=int, default=24)
    parser.add_argument("--pause", type=float, default=0.0)
    parser.add_argument("--resume", default="")
    args = parser.parse_args()
    os.makedirs(args.output, exist_ok=True)

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 64), nn.Tanh(), nn.Linear(64, 1))
    network = model
    rank = int(os.environ.get("RANK", 0))
    if "RANK" in os.environ:
        dist.init_process_group("gloo")
        network = DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    step, lowest = 0, float("inf")
    if args.resume:
        state = torch.load(args.resume, map_location="cpu", weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        step = state["step"]

    while step < args.steps:
        inputs, targets = batch_of(step, rank)
        loss = nn.functional.mse_loss(network(inputs), targets)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        step += 1
        if rank == 0:
            print(f"step {step} loss {loss.item().hex()}", flush=True)
            if step % 2 == 0:
                save_checkpoint(model, optimizer, args.output, step)
            if loss.item() < lowest:
                lowest = loss.item()
                torch.save(model.state_dict(), f"{args.output}/best.pt")
        time.sleep(args.pause)

    if dist.is_initialized():
        # DDP first: freed after its group, gloo may wait for a thread that waits for the interpreter's lock (pytorch#56297).
        del network
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
