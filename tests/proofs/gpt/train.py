"""Trains the GPT, on one rank or several, and goes on from a checkpoint that any version of the model wrote."""

import argparse
import json
import os

import torch
import torch.distributed as dist
from config import GPTConfig
from model import GPT
from saved import SavedBytes
from torch.nn.parallel import DistributedDataParallel as DDP


def batches(steps: int, rank: int):
    generator = torch.Generator().manual_seed(1 + rank)
    for _ in range(steps):
        tokens = torch.randint(64, (8, 33), generator=generator)
        yield tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--options", type=json.loads, default={})
    parser.add_argument("--resume")
    parser.add_argument("--whole", help="resume a model that was pickled as a whole")
    parser.add_argument("--compile", action="store_true")
    args = parser.parse_args()
    rank = int(os.environ.get("RANK", 0))
    torch.manual_seed(0)
    model = torch.load(args.whole, weights_only=False) if args.whole else GPT(GPTConfig(**args.options))
    if rank == 0 and not args.whole:
        torch.save(model, "whole.pt")
    torch.manual_seed(1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    first = 0
    if args.resume:
        state = torch.load(args.resume, weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        first = state["step"]
        torch.set_rng_state(state["rng"])
    trained = model
    if "RANK" in os.environ:
        dist.init_process_group("gloo")
        trained = DDP(model)
    if args.compile:
        trained = torch.compile(model, backend="aot_eager")
    model.train()
    for step, (x, y) in enumerate(batches(args.steps, rank), start=1):
        if step <= first:
            continue
        saved = SavedBytes()
        with saved:
            loss = trained(x, y)
        loss.backward()
        if rank == 0:
            print(f"step {step} loss {loss.item().hex()}")
            print(f"saved {saved.peak}")
            gradients = [parameter.grad.double().norm().item() for parameter in model.parameters()]
            print("gradients", *(one.hex() for one in gradients))
        optimizer.step()
        optimizer.zero_grad()
        if step == args.steps // 2 and rank == 0 and not args.resume and not args.whole:
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step, "rng": torch.get_rng_state()}
            torch.save(state, "half.pt")
    model.eval()
    saved = SavedBytes()
    with saved:
        loss = model(x, y)
    if rank == 0:
        print(f"evaluation {loss.item().hex()} saved {saved.peak}")
    if dist.is_initialized():
        # DDP first: freed after its group, gloo may wait for a thread that waits for the interpreter's lock (pytorch#56297).
        del trained
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
