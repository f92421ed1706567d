"""The example repository: it trains, on one rank and on two, and its README tells the truth about it."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parent.parent / "examples" / "latent-captions"
_LOSS = re.compile(r"^step +(\d+) .* loss (\d+\.\d+) ", re.MULTILINE)
_TABLE_ROW = re.compile(r"^\| ([a-z-]+) \| (\S+/\S+) \|", re.MULTILINE)


@pytest.fixture
def example(tmp_path: Path) -> Path:
    """A copy of the example, so that a run leaves nothing in the checkout."""
    copy = tmp_path / "latent-captions"
    shutil.copytree(EXAMPLE, copy, ignore=shutil.ignore_patterns("runs", "__pycache__"))
    return copy


def run(arguments: list[str], directory: Path, **environment: str) -> str:
    """The output of a command that must succeed."""
    done = subprocess.run(
        arguments,
        cwd=directory,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1", **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def losses(output: str) -> dict[int, float]:
    """The printed loss of each logged step."""
    return {int(step): float(loss) for step, loss in _LOSS.findall(output)}


def free_port() -> int:
    """A TCP port of this machine that is free now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@pytest.mark.torch
def test_trains_on_one_process_and_resumes(example: Path) -> None:
    """The loss falls, the checkpoints are written, and a resumed run goes on where the first one stopped."""
    pytest.importorskip("torch")
    command = [sys.executable, "train.py", "--config", "configs/base.json", "--output", "out", "--save-every", "10"]

    first = losses(run([*command, "--steps", "20"], example))

    assert list(first) == [5, 10, 15, 20]
    assert first[20] < first[5] - 0.1
    assert {path.name for path in (example / "out").iterdir()} == {"step_10.pt", "step_20.pt"}

    resumed = losses(run([*command, "--steps", "30", "--resume"], example))

    assert list(resumed) == [25, 30]
    assert resumed[30] < first[20]
    assert {path.name for path in (example / "out").iterdir()} == {"step_10.pt", "step_20.pt", "step_30.pt"}


@pytest.mark.torch
@pytest.mark.skipif(sys.platform == "win32", reason="the launch script needs bash")
def test_launch_script_trains_on_two_ranks(example: Path) -> None:
    """The launch script, its environment block and DDP work on CPU too."""
    pytest.importorskip("torch")
    environment = {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "MASTER_PORT": str(free_port()),
        "NPROC_PER_NODE": "2",
        "STEPS": "15",
        "BATCH_SIZE": "16",
        "DATA_WORKERS": "1",
        "OUTPUT": "out",
    }

    output = run(["bash", "scripts/train.sh"], example, **environment)

    assert "2 ranks on 1 node(s)" in output
    assert list(losses(output)) == [5, 10, 15]
    assert losses(output)[15] < losses(output)[5]
    assert [path.name for path in (example / "out").iterdir()] == ["step_15.pt"]


def test_readme_names_the_mistakes_that_the_linter_finds(example: Path) -> None:
    """The table of the README and the findings are the same rules in the same files."""
    done = subprocess.run(
        [sys.executable, "-m", "ldlm_lint", "check", "--format", "json", "--no-cache", "."],
        cwd=example,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    found = {(finding["rule"], finding["path"]) for finding in json.loads(done.stdout)["findings"]}
    documented = set(_TABLE_ROW.findall((example / "README.md").read_text(encoding="utf-8")))

    assert len(documented) == 17
    assert documented == found
