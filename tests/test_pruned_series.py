"""Checkpoints that the program itself takes away again, by listing a folder, by the last path, or by giving them one name."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness import lint

RULE = "unbounded-checkpoints"
PROGRAM = """
import os
import pathlib
import shutil

import torch

{before}


def train(net, loader, folder):
    optimizer = torch.optim.AdamW(net.cuda().parameters(), fused=True)
    last = None
    for step, batch in enumerate(loader):
        loss = net(batch.cuda(non_blocking=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 1000 == 999:
{inside}
"""
SAVE = 'path = os.path.join(folder, f"state_{step}.pt")\ntorch.save(net.state_dict(), path)\n'
LISTS = """
def tidy(folder):
    for name in sorted(os.listdir(folder))[:-3]:
        os.remove(os.path.join(folder, name))
"""
LOGS = """
def tidy(folder):
    for name in sorted(pathlib.Path("logs").iterdir())[:-3]:
        name.unlink()
"""
PRUNED = [
    (LISTS, SAVE + "tidy(folder)"),
    ("", SAVE + "if last:\n    os.remove(last)\nlast = path"),
    ("", SAVE + 'os.replace(path, os.path.join(folder, "newest.pt"))'),
    ("", SAVE + 'shutil.move(path, f"{folder}/newest.pt")'),
]
GROWING = [
    ("", SAVE),
    ("", 'path = f"{folder}/state_{step}.pt"\nif os.path.exists(path):\n    os.remove(path)\ntorch.save(net.state_dict(), path)'),
    ("", SAVE + "os.replace(path, f\"{folder}/done_{step}.pt\")"),
    (LOGS, 'torch.save(net.state_dict(), f"states/{step}.pt")\ntidy(folder)'),
    ("", SAVE + 'os.remove(os.path.join(folder, "events.log"))'),
]


def count(tmp_path: Path, before: str, inside: str) -> int:
    """How many series are reported."""
    lines = "".join(f"            {line}\n" for line in inside.splitlines())
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'small'\nversion = '1'\n")
    (tmp_path / "train.py").write_text(PROGRAM.format(before=before, inside=lines))
    return len([one for one in lint(tmp_path).findings if one.rule == RULE])


@pytest.mark.parametrize(("before", "inside"), PRUNED)
def test_what_the_program_takes_away_again_is_no_growing_series(tmp_path, before, inside):
    assert count(tmp_path, before, inside) == 0


@pytest.mark.parametrize(("before", "inside"), GROWING)
def test_what_removes_other_files_prunes_nothing(tmp_path, before, inside):
    assert count(tmp_path, before, inside) == 1
