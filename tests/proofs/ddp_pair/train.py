"""Trains a small regressor, four micro-batches to a step, on one or several ranks."""

import argparse
import hashlib
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def batches_of(rank, count):
    generator = torch.Generator().manual_seed(100 + rank)
    for _ in range(count):
        batch = torch.randn(8, 16, generator=generator)
        yield batch, batch.sum(dim=1, keepdim=True).sin()


def counting(reductions):
    """A hook of DDP that counts the buckets which it averages, as DDP itself does."""

    def average(world, bucket):
        reductions.append(bucket.index())
        dist.all_reduce(bucket.buffer().div_(world))
        done = torch.futures.Future()
        done.set_result(bucket.buffer())
        return done

    return average


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--accumulate", type=int, default=4)
    parser.add_argument("--batches", type=int, default=78)
    parser.add_argument("--resume", default="")
    args = parser.parse_args()
    torch.manual_seed(0)
    rank, world = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 1)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    done = 0
    if args.resume:
        checkpoint = torch.load(args.resume, weights_only=True, map_location=device)
        model.load_state_dict(checkpoint["model"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        done = checkpoint["batches"]
    plain, reductions = model, []
    if world > 1:
        dist.init_process_group("gloo")
        model = DDP(model)
        model.register_comm_hook(world, counting(reductions))
    batches = list(batches_of(rank, args.batches))
    step = done // args.accumulate
    for i, (batch, target) in enumerate(batches):
        if i < done:
            continue
        output = model(batch.to(device))
        loss = nn.functional.mse_loss(output, target.to(device)) / args.accumulate
        loss.backward()
        if (i + 1) % args.accumulate == 0 or i + 1 == len(batches):
            optimizer.step()
            optimizer.zero_grad()
            step += 1
            if rank == 0:
                print(f"step {step} loss {loss.item().hex()}")
                print(f"reductions {step} {len(reductions)}")
            reductions.clear()
            if rank == 0 and step == 10 and not done:
                state = {"model": plain.state_dict(), "optimizer": optimizer.state_dict(), "batches": i + 1}
                torch.save(state, "step10.pt")
    values = repr([one.flatten().tolist() for one in plain.parameters()])
    digest = torch.tensor(int(hashlib.sha256(values.encode()).hexdigest()[:15], 16))
    digests = [torch.zeros_like(digest) for _ in range(world)] if world > 1 else [digest]
    if world > 1:
        dist.all_gather(digests, digest)
    if rank == 0:
        for one, known in enumerate(digests):
            print(f"rank {one} ends with {known.item():x}, fused {optimizer.param_groups[0].get('fused')}")
        torch.save(plain.state_dict(), "last.pt")
    if world > 1:
        dist.barrier()
        sys.stdout.flush()
        # gloo's process group waits for its threads when it is freed, with the lock of the interpreter that they may wait for.
        os._exit(0)


if __name__ == "__main__":
    main()
