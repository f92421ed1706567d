"""``probe run`` with the real torch: the program computes what it computes without it, and what it compiles and profiles
stays its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import warm

from ldlm_lint.evidence import files
from ldlm_lint.evidence.model import Status

PROGRAM = Path(__file__).parent / "probed" / "core" / "train.py"


def _run(folder: Path, *words: str) -> str:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout


def _alone(folder: Path, *arguments: str) -> str:
    code, out, err = warm.run([str(PROGRAM), *arguments], folder, {"OMP_NUM_THREADS": "1"}, 500)
    assert code == 0, out + err
    return out


def _probed(
    folder: Path, *arguments: str, options: tuple[str, ...] = ("--no-stop",), launcher=(sys.executable,)
) -> str:
    command = (sys.executable, "-m", "ldlm_lint", "probe", "run", "--out", "seen", *options, "--", *launcher)
    return _run(folder, *command, str(PROGRAM), *arguments)


@pytest.mark.torch
def test_losses_stay_bit_for_bit_and_iterations_are_counted(tmp_path: Path) -> None:
    assert _probed(tmp_path) == _alone(tmp_path)
    (one,) = files.read(tmp_path / "seen")
    steps = one.observations["steps"]
    assert (one.run.status, one.run.steps, steps["backward_passes"]) == (Status.FINISHED, 8, 16)
    assert steps["backward_passes_per_step"] == {"2": 8}
    assert one.unavailable.get("profiled step") is None
    assert 0 < one.overhead_seconds < one.run.seconds


@pytest.mark.torch
def test_compiled_graphs_stay_the_same_and_the_program_s_own_profiler_goes_first(tmp_path: Path) -> None:
    """Its schedule records the steps in which the probe would have its window."""
    modes = ("eager", "profiler")
    probed = _probed(tmp_path, *modes)
    assert "graphs" in probed and "profiled" in probed and "aten::" in probed
    assert probed == _alone(tmp_path, *modes)
    (one,) = files.read(tmp_path / "seen")
    assert "its own profiler" in one.unavailable["profiled step"]


@pytest.mark.torch
def test_spawned_ranks_are_stopped_and_leave_evidence_each(tmp_path: Path) -> None:
    said = _probed(tmp_path, f"spawn={tmp_path / 'meet'}", options=("--steps", "6"))
    assert "joined" in said
    found = files.read(tmp_path / "seen")
    assert sorted((one.run.rank, one.run.world_size, one.run.steps) for one in found) == [(0, 2, 6), (1, 2, 6)]
    assert len({one.run.run_id for one in found}) == 1
    assert {one.run.status for one in found} == {Status.STOPPED}


@pytest.mark.torch
@pytest.mark.slow
def test_losses_of_spawned_ranks_stay_bit_for_bit(tmp_path: Path) -> None:
    probed = _probed(tmp_path, f"spawn={tmp_path / 'one'}")
    alone = _alone(tmp_path, f"spawn={tmp_path / 'two'}")
    assert sorted(probed.splitlines()) == sorted(alone.splitlines())


@pytest.mark.torch
@pytest.mark.slow
def test_generated_kernels_stay_the_same(tmp_path: Path) -> None:
    assert _probed(tmp_path, "inductor") == _alone(tmp_path, "inductor")


PLAIN = """
import sys, torch
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
optimizer = torch.optim.AdamW(model.parameters())
for step in range(12):
    optimizer.zero_grad()
    model(torch.randn(8, 64)).mean().backward()
    optimizer.step()
    print("step", step, file=sys.stderr)
"""


@pytest.mark.torch
def test_the_profile_leaves_no_warning_of_torch_among_the_lines_of_the_program(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PLAIN)
    words = (sys.executable, "-m", "ldlm_lint", "probe", "run", "--no-stop", "--out", "seen", "--", sys.executable, "train.py")
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=500, check=False)
    assert "CPUAllocator" not in done.stderr and "before the profiling started" not in done.stderr
    assert done.stderr.count("\nstep ") == 12
    (one,) = files.read(tmp_path / "seen")
    assert "profiled step" not in one.unavailable


@pytest.mark.torch
def test_torch_logs_its_warnings_again_after_the_profile() -> None:
    import torch

    from ldlm_lint.probe import native_log

    level = native_log._level(torch)
    if level is None:
        pytest.skip("this torch has no log level that can be read")
    before = level.value
    log_again = native_log.without_warnings(torch)
    assert level.value == 2
    log_again()
    assert level.value == before


@pytest.mark.torch
def test_a_function_that_computes_something_again_is_no_switch() -> None:
    from torch import nn

    from ldlm_lint.probe.observers.stacks import switches_of

    def precompute_freqs_cis(width: int) -> int:
        return width

    def recompute_mask(width: int) -> int:
        return width

    names = {"precompute_freqs_cis": precompute_freqs_cis, "recompute_mask": recompute_mask, "nn": nn}
    exec(MODELS, names)
    assert [set(switches_of(one, one, [])) for one in (names["Plain"](), names["Switched"](), names["Layers"]())] == [
        set(),
        {"recompute"},
        {"gradient_checkpointing_enable"},
    ]


MODELS = """
class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.freqs = precompute_freqs_cis(4)
    def forward(self, x):
        return x + recompute_mask(4) + self.recompute_scale()
    def recompute_scale(self):
        return 1
class Switched(nn.Module):
    def __init__(self):
        super().__init__()
        self.recompute = False
class Layers(nn.Module):
    def gradient_checkpointing_enable(self):
        pass
"""
