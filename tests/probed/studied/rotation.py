"""Ways to keep checkpoints, by hand: the last few, the best and the last, all of them, written aside and renamed."""

from __future__ import annotations

import glob
import os
import shutil
import sys
from pathlib import Path

import torch
from torch import nn

WORDS = set(sys.argv[1:])
OUT = Path("out")
KEEP = 3


def by_step(name: str) -> int:
    return int(Path(name).stem.rpartition("-")[2])


def keep_last(state: dict, step: int) -> None:
    """The last three files."""
    torch.save(state, OUT / f"step-{step}.pt")
    for old in sorted(glob.glob(str(OUT / "step-*.pt")), key=by_step)[:-KEEP]:
        os.remove(old)


def keep_last_folders(state: dict, step: int) -> None:
    """The last three folders of four files each."""
    folder = OUT / f"step-{step}"
    folder.mkdir(exist_ok=True)
    for name, value in state.items():
        torch.save(value, folder / f"{name}.pt")
    torch.save(torch.get_rng_state(), folder / "random.pt")
    torch.save({"step": step}, folder / "progress.pt")
    for old in sorted(OUT.glob("step-*"), key=lambda one: by_step(one.name))[:-KEEP]:
        shutil.rmtree(old)


def best_and_last(state: dict, step: int, value: float, best: float) -> None:
    torch.save(state, OUT / "last.pt")  # holds: non-atomic-checkpoint
    if value < best:
        torch.save(state, OUT / "best.pt")  # holds: non-atomic-checkpoint


def one_folder(state: dict, step: int) -> None:
    """Parts of one state in one folder, written once: five files, one checkpoint."""
    if step == 4:
        folder = OUT / "final"
        folder.mkdir(exist_ok=True)
        for index in range(6):
            torch.save(state["model"], folder / f"part-{index}.pt")


def aside(state: dict, step: int) -> None:
    temporary = OUT / "last.pt.tmp"
    with open(temporary, "wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, OUT / "last.pt")


def removed_first(state: dict, step: int) -> None:
    path = OUT / "last.pt"
    if path.exists():
        path.unlink()  # holds: checkpoint-removed-before-replacement
    torch.save(state, path)  # open: non-atomic-checkpoint


def kept_all(state: dict, step: int) -> None:
    torch.save(state, OUT / f"step-{step}.pt")  # holds: unbounded-checkpoints


def kept_all_folders(state: dict, step: int) -> None:
    folder = OUT / f"step-{step}"
    folder.mkdir(exist_ok=True)
    torch.save(state["model"], folder / "model.pt")  # holds: unbounded-checkpoints
    torch.save(state["optimizer"], folder / "optimizer.pt")  # holds: unbounded-checkpoints


def once_each(state: dict, step: int) -> None:
    """Two files for the whole training, whose second is written once, at the end of it."""
    if step == 1:
        torch.save(state["model"], OUT / "first.pt")
    if step == 11:
        torch.save(state["model"], OUT / "final.pt")


def moved_away(state: dict, step: int) -> None:
    """The last and the one before it."""
    last = OUT / "last.pt"
    if last.exists():
        os.replace(last, OUT / "previous.pt")
    torch.save(state, last)


WAYS = {one.__name__.replace("_", "-"): one for one in (
    keep_last, keep_last_folders, one_folder, aside, removed_first, kept_all, kept_all_folders, once_each, moved_away,
)}  # fmt: skip


def main() -> None:
    torch.manual_seed(0)
    OUT.mkdir(exist_ok=True)
    model = nn.Linear(8, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)  # holds: optimizer-not-fused
    best = float("inf")
    for step in range(1, 13):
        loss = (model(torch.ones(4, 8)) - 1).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        for name in WORDS & WAYS.keys():
            WAYS[name](state, step)
        if "best-and-last" in WORDS:
            best_and_last(state, step, loss.item(), best)
            best = min(best, loss.item())


main()
