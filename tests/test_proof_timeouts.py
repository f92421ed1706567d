"""What the timeout of a process group is before and after the fix of a variable that nothing reads."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from proof import LIMIT_S, copy_of, fix

pytestmark = pytest.mark.torch


def timeout_of(project: Path) -> tuple[int, str]:
    """The timeout that a group has when the project's script is run, and the result of its collective."""
    done = subprocess.run(
        ["bash", "run.sh"],
        cwd=project,
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = re.search(r"timeout (\d+)\nstep 0 loss (\S+)", done.stdout)
    assert found, done.stdout
    return int(found[1]), found[2]


def test_the_group_gets_the_timeout_that_the_script_only_promised(tmp_path: Path) -> None:
    before = copy_of("timeouts", tmp_path)
    after = copy_of("timeouts", tmp_path, "after")
    fix(after, unsafe=True, select=["ineffective-environment-variable"])
    assert "NCCL_TIMEOUT" not in (after / "run.sh").read_text()
    (old, result), (new, same) = timeout_of(before), timeout_of(after)
    assert (old, new) == (1800, 900)
    assert result == same
