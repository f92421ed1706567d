"""From a watched training to a written fix: what two ranks showed lifts the fix, what they refuted withdraws it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.torch

UNUSED = "ddp-find-unused-parameters"
PROGRAM = """\
import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.used = torch.nn.Linear(4, 4)
        self.other = torch.nn.Linear(4, 4) if sys.argv[1] == "unused" else None

    def forward(self, x):
        return self.used(x)


def train(rank):
    dist.init_process_group("gloo", init_method=f"file://{os.getcwd()}/store", rank=rank, world_size=2)
    model = DDP(Model(), find_unused_parameters=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        optimizer.zero_grad()
        model(torch.ones(2, 4)).sum().backward()
        optimizer.step()
    # DDP first: freed after its group, gloo may wait for a thread that waits for the interpreter's lock (pytorch#56297).
    del model
    dist.destroy_process_group()


if __name__ == "__main__":
    torch.multiprocessing.start_processes(train, nprocs=2, start_method="fork")
"""


def ldlm_lint(folder: Path, *arguments: str) -> tuple[int, str, str]:
    command = [sys.executable, "-m", "ldlm_lint", *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.skipif(os.name == "nt", reason="ranks are forked")
def test_two_ranks_lift_the_fix_or_withdraw_it(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(f'[tool.ldlm-lint]\nselect = ["{UNUSED}"]\n')
    program = tmp_path / "train.py"
    program.write_text(PROGRAM)
    for model in ("used", "unused"):
        (tmp_path / "store").unlink(missing_ok=True)
        watched = ("probe", "run", "--yes", "--steps", "5", "--out", model, "--", sys.executable, "train.py", model)
        code, _, err = ldlm_lint(tmp_path, *watched)
        assert code == (1 if model == "used" else 0), err
    _, out, _ = ldlm_lint(tmp_path, "check", "--evidence", "unused", "--format", "json", ".")
    (refuted,) = json.loads(out)["findings"]
    assert refuted["evidence"]["verdict"] == "refuted", refuted
    assert "other.weight" in refuted["evidence"]["reason"]
    fix = ("--fix", "--unsafe-fixes", ".")
    assert ldlm_lint(tmp_path, "check", "--evidence", "unused", *fix)[0] == 0
    assert ldlm_lint(tmp_path, "check", "--evidence", "used", "--evidence", "unused", *fix)[0] == 1
    assert program.read_text() == PROGRAM
    code, _, err = ldlm_lint(tmp_path, "check", "--evidence", "used", *fix)
    assert (code, program.read_text()) == (0, PROGRAM.replace("parameters=True", "parameters=False")), err
