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
