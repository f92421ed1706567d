"""Small programs whose training step is a closure, run under the probe: what is told is told of the right lines."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ldlm_lint.evidence import files
from ldlm_lint.evidence.model import Evidence, Judgement, Status
from ldlm_lint.evidence.verdicts import judge

pytestmark = pytest.mark.torch

START = """\
import sys
import warnings
import torch
from torch import nn
torch.manual_seed(0)
model = nn.Linear(4, 1)
"""
CLOSURE = """
history = []
optimizer = OPTIMIZER
def closure():
    optimizer.zero_grad(set_to_none=False)
    loss = model(torch.ones(2, 4)).square().mean()
    loss.backward()
    history.append(loss)  # kept
    loss.item()  # read
    return loss
for step in range(20):
    optimizer.step(closure)
"""
# As a Trainer does it: no function of the program's is being run between two steps.
TRAINER = """
def fit(module, optimizer, steps):
    for _ in range(steps):
        def closure():
            optimizer.zero_grad()
            loss = module.training_step()
            loss.backward()
            loss.item()
            return loss
        optimizer.step(closure=closure)
"""
TRAINED = """
from trainer import fit
class Module:
    def __init__(self):
        self.losses = []
    def training_step(self):
        loss = model(torch.ones(2, 4)).square().mean()
        self.losses.append(loss)  # kept
        loss.item()  # read
        return loss
def main():
    fit(Module(), torch.optim.AdamW(model.parameters()), 20)
main()
"""
WARNING = """
class Old(torch.optim.SGD):
    def __init__(self, params):
        warnings.warn("old optimizer", FutureWarning, stacklevel=2)
        super().__init__(params, lr=0.1)
class Loader(torch.utils.data.DataLoader):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        warnings.warn("old loader", FutureWarning, stacklevel=2)
class Block(nn.Linear):
    def __init__(self):
        warnings.warn("old block", FutureWarning, stacklevel=2)
        super().__init__(4, 1)
class Saved:
    def __reduce__(self):
        warnings.warn("saved", FutureWarning, stacklevel=4)
        return Saved, ()
def built():
    return Block()
model = built()
model = Block()
loader = Loader([torch.ones(4)] * 2)
optimizer = Old(model.parameters())
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
scheduler.step()
for step in range(6):
    optimizer.zero_grad()
    loss = model(torch.ones(2, 4)).square().mean()
    loss.backward()
    optimizer.step()
    scheduler.step(step)
    for _ in range(2):
        warnings.warn("once for this line")
        float(loss)
optimizer.zero_grad()
torch.autograd.backward(model(torch.ones(2, 4)).sum(), create_graph=True)
torch.nn.utils.clip_grad_norm(model.parameters(), 1.0)
torch.save({"a": Saved()}, sys.argv[1])
"""


def _run(folder: Path, command: list[str]) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)


def _watched(folder: Path, program: str, *arguments: str) -> tuple[Evidence, str]:
    (folder / "train.py").write_text(program, encoding="utf-8")
    out = folder / "evidence"
    probe = [sys.executable, "-m", "ldlm_lint", "probe", "run", "--yes", "--steps", "8", "--out", str(out), "--"]
    done = _run(folder, [*probe, sys.executable, "train.py", *arguments])
    (evidence,) = files.read(out)
    return evidence, done.stderr


def _lines(program: str, mark: str) -> list[int]:
    return [number for number, line in enumerate(program.splitlines(), 1) if line.endswith(f"# {mark}")]


def _at(evidence: Evidence, rule: str) -> list[tuple[int, str]]:
    found: list[Judgement] = [one for one in judge([evidence]) if one.rule == rule]
    return [(site.line, site.function) for one in found for site in one.sites]


def _reads(evidence: Evidence) -> list[Mapping[str, Any]]:
    return evidence.observations["host_syncs"]["places"]


@pytest.mark.parametrize(
    ("optimizer", "passes"),
    [
        ("torch.optim.AdamW(model.parameters())", 1),
        ("torch.optim.LBFGS(model.parameters(), lr=1e-4, max_iter=3, tolerance_grad=0, tolerance_change=0)", 3),
    ],
    ids=["AdamW", "LBFGS"],
)
def test_a_closure_is_the_programs(optimizer: str, passes: int, tmp_path) -> None:
    program = START + CLOSURE.replace("OPTIMIZER", optimizer)
    evidence, _ = _watched(tmp_path, program)
    assert evidence.unavailable == {}
    assert evidence.observations["steps"]["backward_passes_per_step"] == {str(passes): 8}
    assert [line for line, _ in _at(evidence, "host-sync-in-training-loop")] == _lines(program, "read")
    assert [line for line, _ in _at(evidence, "loss-graph-accumulation")] == _lines(program, "kept")
    # The optimizer's own reads stay its own.
    assert {one["caller"] for one in _reads(evidence) if one["site"]["line"] not in _lines(program, "read")} <= {
        "optimizer"
    }
    # Gradients are looked at when the closure has made them.
    (parameters,) = evidence.observations["parameters"]
    assert (parameters["steps"], parameters["without_gradient"]) == (8, {})


def test_what_a_trainer_runs_is_told_of_the_programs_lines(tmp_path, monkeypatch) -> None:
    installed = tmp_path / "env" / "site-packages"
    installed.mkdir(parents=True)
    (installed / "trainer.py").write_text(TRAINER, encoding="utf-8")
    program = "import sys\nsys.path.insert(0, 'env/site-packages')\n" + START + TRAINED
    evidence, _ = _watched(tmp_path, program)
    assert _at(evidence, "host-sync-in-training-loop") == [(_lines(program, "read")[0], "Module.training_step")]
    assert _at(evidence, "loss-graph-accumulation") == [(_lines(program, "kept")[0], "training_step")]
    (held,) = evidence.observations["graphs"]["kept_by"]
    assert (held["name"], held["type"]) == ("self.losses", "list")


def test_warnings_are_shown_for_the_lines_that_they_are_about(tmp_path) -> None:
    program = START + "warnings.simplefilter('default')\n" + WARNING
    evidence, watched = _watched(tmp_path, program, "a.pt")
    alone = _run(tmp_path, [sys.executable, "train.py", "b.pt"]).stderr
    assert evidence.run.status is Status.FINISHED
    expected = [line for line in alone.splitlines() if "Warning: " in line]
    assert len(expected) >= 9
    assert [line for line in watched.splitlines() if "Warning: " in line] == expected
    assert "ldlm" not in "".join(expected)


LEAVING = "import threading\nmodel(torch.ones(1, 4)).sum().backward()\n"


@pytest.mark.parametrize(
    ("end", "status", "text"),
    [
        ("sys.exit(1)", "crashed", "exit code 1"),
        ("sys.exit('no data')", "crashed", "SystemExit: no data"),
        ("raise SystemExit(2)", "crashed", "exit code 2"),
        ("sys.exit(0)", "finished", ""),
        ("try:\n    sys.exit(1)\nexcept SystemExit:\n    print('on')", "finished", ""),
        ("threading.Thread(target=lambda: sys.exit(1)).start()", "finished", ""),
    ],
)
def test_an_exit_code_is_how_a_program_ended(end: str, status: str, text: str, tmp_path) -> None:
    evidence, told = _watched(tmp_path, f"{START}{LEAVING}{end}\n")
    assert (evidence.run.status.value, evidence.run.exception) == (status, text)
    assert ("ran to the end of the program" in told) is not bool(text)
    assert f"({sys.executable})" in told or evidence.environment.executable in told
