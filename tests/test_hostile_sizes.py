"""Much of everything: files of 50 MB and trees of 100,000 files end in time, within bounds of memory; run by hand."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from test_bad_input import BEAT

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not hasattr(os, "wait4"), reason="what a process used")]
SIZE = 50_000_000
CELL = json.dumps({"cell_type": "code", "source": "import torch\n", "metadata": {}, "outputs": [{"text": "y" * 900_000}]})
LARGE = {
    "a.py": ("", "x = torch.load('a')\n", ""),
    "a.sh": ("", "export NCCL_TIMEOUT=7200\n", ""),
    "a.yaml": ("", "num_workers: 0\n", ""),
    "a.json": ("{", '"num_workers": 0,\n', '"a": 1}'),
    "a.toml": ("", "num_workers = 0\n", ""),
    ".env": ("", "NCCL_TIMEOUT=7200\n", ""),
    "Dockerfile": ("", "ENV NCCL_TIMEOUT=7200\n", ""),
    "a.ipynb": ('{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [', f"{CELL},", f"{CELL}]}}"),
}


# Of small memory itself: the peak of a child counts what the process had that it was forked from.
MEASURED = """
import json, os, subprocess, sys
run = subprocess.Popen(sys.argv[2:], stdout=open(sys.argv[1], "wb"))
_, status, used = os.wait4(run.pid, 0)
run.returncode = os.waitstatus_to_exitcode(status)
print(json.dumps([run.returncode, used.ru_utime + used.ru_stime, used.ru_maxrss]))
"""


def checked(folder: Path, output: Path) -> tuple[int, float, float]:
    """The exit code of a check of a folder, its processor seconds and the most MiB that it had."""
    command = [sys.executable, "-m", "ldlm_lint", "--no-cache", "--format", "json", str(folder)]
    told = subprocess.run([sys.executable, "-c", MEASURED, str(output), *command], cwd=folder, stdout=subprocess.PIPE, check=True)
    code, seconds, peak = json.loads(told.stdout)
    return code, seconds, peak / (1024 if sys.platform == "linux" else 1024**2)


def test_files_of_50_megabytes(tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    (root / "beside.sh").write_text(BEAT)
    for name, (first, unit, last) in LARGE.items():
        (root / name).write_text(first + unit * ((SIZE - len(first) - len(last)) // len(unit)) + last)
    code, seconds, most = checked(root, tmp_path / "out")
    found = json.loads((tmp_path / "out").read_text())["findings"]
    assert code == 3
    assert {one["path"] for one in found} >= {"a.py", "a.sh", "beside.sh"}
    assert seconds < 10 and most < 250


def test_a_hundred_thousand_files(tmp_path: Path) -> None:
    root = tmp_path / "project"
    for number in range(1_000):
        folder = root / f"{number % 10}" / f"{number}"
        folder.mkdir(parents=True)
        for kind in range(50):
            (folder / f"{kind}.py").write_text(f"import torch\nx = {number}\n")
            (folder / f"{kind}.yaml").write_text(f"batch: {number}\n")
    (root / "beside.sh").write_text(BEAT)
    code, seconds, most = checked(root, tmp_path / "out")
    found = json.loads((tmp_path / "out").read_text())["findings"]
    assert code == 1 and {one["path"] for one in found} == {"beside.sh"}
    assert seconds < 120 and most < 400
