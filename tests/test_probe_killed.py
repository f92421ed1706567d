"""Processes that die of a signal in step 8: nothing of steps 1 to 7 is lost, also of the ranks that the launcher ends then."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ldlm_lint.evidence import files
from ldlm_lint.evidence.model import Evidence, Status
from ldlm_lint.evidence.verdicts import judge

pytestmark = pytest.mark.torch

PROGRAM = Path(__file__).parent / "probed" / "killed" / "train.py"
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2")


def _watched(folder: Path, *words: str) -> tuple[list[Evidence], str]:
    probe = ("-m", "ldlm_lint", "probe", "run", "--steps", "20", "--out", "seen", "--", sys.executable)
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, *probe, *words]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 3, done.stdout + done.stderr
    return files.read(folder / "seen"), done.stderr


def _judged(evidence: list[Evidence], rule: str) -> str:
    return next(one.verdict.value for one in judge(evidence) if one.rule == rule)


@pytest.mark.parametrize("name", ["SIGKILL", "SIGSEGV"])
def test_a_process_that_dies_keeps_its_steps(tmp_path: Path, name: str) -> None:
    evidence, said = _watched(tmp_path, str(PROGRAM), name)
    (one,) = evidence
    assert (one.run.status, one.run.steps) == (Status.KILLED, 7)
    assert f"({name}) after step 7; the evidence of 7 steps is kept" in said
    seen = one.observations
    assert seen["steps"]["backward_passes"] == 7 and seen["steps"]["disturbed_by"] == {"checkpoint": 6}
    # The save behind the seventh step is there, the profile of the fourth step, and the norms of all.
    assert [Path(save["path"]).name for save in seen["checkpoint_files"]["saves"]] == [
        f"step{n}.pt" for n in range(1, 8)
    ]
    assert seen["optimizers"][0]["kernels"] and "profiled step" not in one.unavailable
    assert len(seen["gradient_scaling"]["clips"][0]["norms"]) == 7
    assert _judged(evidence, "unbounded-checkpoints") == "verified"


def test_both_ranks_keep_their_steps_when_one_is_killed(tmp_path: Path) -> None:
    evidence, said = _watched(tmp_path, *TORCHRUN, str(PROGRAM), "SIGKILL")
    assert [(one.run.rank, one.run.world_size, one.run.steps) for one in evidence] == [(0, 2, 7), (1, 2, 7)]
    assert evidence[0].run.status is Status.KILLED
    # The other one fails in its collective (gloo may abort it), or is told to end first.
    assert evidence[1].run.status in (Status.CRASHED, Status.INTERRUPTED, Status.KILLED)
    assert len({one.run.run_id for one in evidence}) == 1
    assert re.search(r"rank 0(, 1 were| was) killed after step 7; the evidence of 7 steps is kept", said)
    assert _judged(evidence, "checkpoint-saved-by-every-rank") == "refuted"
