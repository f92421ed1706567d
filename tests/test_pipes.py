"""A reader that leaves early (``| head``) is no failure to tell of, and neither is a process without stdout."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ldlm_lint import cli

pytestmark = pytest.mark.skipif(os.name == "nt", reason="pipes of POSIX")
ROOT = Path(cli.__file__).parents[1]
PIPE_CLOSED = 141
LONG = "\n".join(["export TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=12000000"] * 60)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a long report."""
    (tmp_path / "pyproject.toml").write_text("")
    for number in range(2):
        (tmp_path / f"run{number}.sh").write_text(LONG)
    return tmp_path


def started(words: str, folder: Path, unbuffered: str, **streams: object) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": unbuffered}
    command = [sys.executable, "-m", "ldlm_lint", *words.split()]
    return subprocess.Popen(command, cwd=folder, env=environment, text=True, **streams)  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("words", "unbuffered"),
    [
        (".", ""),
        (".", "1"),
        (". --no-cache --format concise", "1"),
        (". --format json", ""),
        (". --diff --unsafe-fixes", "1"),
        (". --format json --output /dev/stdout", ""),
        ("rules", ""),
        ("rules --color always", "1"),
        ("explain 7604", ""),
        ("explain 7604 --full", "1"),
        ("init --stdout", ""),
        ("doctor", "1"),
    ],
)
def test_a_reader_that_leaves_is_no_error(words: str, unbuffered: str, project: Path) -> None:
    with started(words, project, unbuffered, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout and process.stderr
        # Nothing is read: also what would fit into the pipe finds it closed.
        process.stdout.close()
        errors = process.stderr.read()
        assert process.wait(60) == PIPE_CLOSED
    assert errors == ""


def test_errors_that_nobody_reads_are_no_error_either(project: Path) -> None:
    with started("nosuch .", project, "", stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        assert process.stdout
        process.stdout.close()
        assert process.wait(60) == PIPE_CLOSED


@pytest.mark.parametrize("words", [".", "rules", "explain 7604"])
def test_without_stdout_the_exit_code_is_that_of_the_run(words: str, project: Path) -> None:
    script = f'exec "$0" -m ldlm_lint {words} >&-'
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(["sh", "-c", script, sys.executable], cwd=project, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1 if words.startswith(".") else 0, "")
