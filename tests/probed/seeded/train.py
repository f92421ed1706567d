"""A training on two ranks with defects that are known; each option turns one of them off. CPU, gloo, seconds."""

import argparse
import datetime
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


class Numbers(Dataset):
    def __init__(self, count: int, width: int) -> None:
        self.rows = torch.randn(count, 4, width, generator=torch.Generator().manual_seed(1))

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> torch.Tensor:
        return self.rows[index]


class SelfAttention(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.mixed = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.mixed(x).chunk(3, dim=-1)
        return self.out(F.scaled_dot_product_attention(q, k, v))


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.attention = SelfAttention(width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm(x))
        return x + self.mlp(x)


class Plain(nn.Module):
    """Keeps the activations of all blocks."""

    def __init__(self, width: int, depth: int, unused: bool) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))
        self.head = nn.Linear(width, 1)
        self.dead = nn.Linear(width, width) if unused else None
        self.uses_dead = False

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = block(x)
        if self.dead is not None and self.uses_dead:
            x = x + self.dead(x)
        return self.head(x).mean()


class Thrifty(Plain):
    """Computes each block again in the backward pass."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False)
        return self.head(x).mean()


class Whole(Plain):
    """Computes all blocks again at once."""

    def run_blocks(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = block(x)
        return x

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(checkpoint(self.run_blocks, x, use_reentrant=False)).mean()


class Reentrant(Plain):
    """Hands the reentrant implementation inputs that require no gradient: the blocks never learn."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=True)
        return self.head(x).mean()


MODELS = {"none": Plain, "blocks": Thrifty, "whole": Whole, "reentrant": Reentrant}


def save(state: dict, step: int, options: argparse.Namespace) -> None:
    path = os.path.join(
        options.out, "last.pt" if options.saves in ("in-place", "atomic", "removed-first") else f"step{step}.pt"
    )
    if options.saves == "removed-first":
        # Imported here: a program that loads no code that removes files cannot have a rotation.
        from removing import remove_if_there

        remove_if_there(path)
    if options.saves == "atomic":
        torch.save(state, path + ".part")
        os.replace(path + ".part", path)
    else:
        torch.save(state, path)
    if options.saves == "pruned":
        from removing import remove_if_there

        remove_if_there(os.path.join(options.out, f"step{step - 2}.pt"))


def backward(model: nn.Module, rows: torch.Tensor, micro: int, options: argparse.Namespace) -> torch.Tensor:
    total = torch.zeros(())
    for at, part in enumerate(rows.chunk(micro)):
        if options.no_sync and at + 1 < micro:
            with model.no_sync():
                loss = model(part) / micro
                loss.backward()
        else:
            loss = model(part) / micro
            loss.backward()
        total += loss.detach()
    return total


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", required=True)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--micro", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=99)
    parser.add_argument("--group-timeout", type=float)
    parser.add_argument("--unused", choices=("always", "never", "one-rank", "frozen"), default="always")
    parser.add_argument("--no-sync", action="store_true")
    parser.add_argument("--checkpointing", choices=sorted(MODELS), default="none")
    parser.add_argument("--fused", action="store_true")
    parser.add_argument("--persistent", action="store_true")
    parser.add_argument("--set-epoch", action="store_true")
    parser.add_argument("--bucket-view", action="store_true")
    parser.add_argument(
        "--saves", choices=("none", "unbounded", "pruned", "in-place", "atomic", "removed-first"), default="unbounded"
    )
    parser.add_argument("--all-ranks-save", action="store_true")
    parser.add_argument("--width", type=int, default=16)
    options = parser.parse_args()

    torch.manual_seed(7)
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=options.timeout))
    rank = dist.get_rank()
    given = {"timeout": datetime.timedelta(seconds=options.group_timeout)} if options.group_timeout else {}
    group = dist.new_group([0, 1], **given)

    model = MODELS[options.checkpointing](options.width, 3, options.unused in ("always", "one-rank"))
    model.uses_dead = options.unused == "one-rank" and rank == 0
    model = DDP(model, find_unused_parameters=True, gradient_as_bucket_view=options.bucket_view)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=options.fused)
    data = Numbers(24, options.width)
    sampler = DistributedSampler(data, shuffle=True)
    loader = DataLoader(data, batch_size=4, sampler=sampler, num_workers=1, persistent_workers=options.persistent)

    step = epoch = 0
    while step < options.steps:
        if options.set_epoch:
            sampler.set_epoch(epoch)
        for rows in loader:
            if options.unused == "frozen" and rank == 1:
                model.module.head.requires_grad_(step % 2 == 0)
            loss = backward(model, rows, options.micro, options)
            optimizer.step()
            optimizer.zero_grad()
            step += 1
            # One write: ranks share a pipe.
            sys.stdout.write(f"rank {rank} step {step} loss {loss.item()!r}\n")
            sys.stdout.flush()
            if options.saves != "none" and (rank == 0 or options.all_ranks_save):
                save({"model": model.module.state_dict(), "step": step}, step, options)
            if step == options.steps:
                break
        epoch += 1
    dist.barrier(group)
    # DDP first: freed after its group, gloo may wait for a thread that waits for the interpreter's lock (pytorch#56297).
    del model
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
