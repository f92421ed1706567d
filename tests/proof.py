"""Programs that are trained before and after their fixes: what a fix promises is measured, not argued.

``tests/proofs/<name>/`` holds a small training repository that ends in seconds on a CPU. It prints a line
``step <n> loss <float.hex()>`` for each step, so that losses can be compared bit by bit, and writes its files below
``--output`` or the working directory. A test copies it, fixes the copy by the command that users have, runs both and
compares (``python -m pytest -m torch tests/test_proof_*.py``).
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ldlm_lint.config import Config
from ldlm_lint.fixing import Outcome, apply_fixes
from ldlm_lint.model import Applicability

PROGRAMS = Path(__file__).parent / "proofs"
LIMIT_S = 300
_STEP = re.compile(r"^step (\d+) loss (\S+)$", re.MULTILINE)


@dataclass(frozen=True)
class Run:
    """What a program did: the loss of each step, bit for bit, both its streams, and its folder."""

    losses: tuple[tuple[int, float], ...]
    output: str
    folder: Path

    def files(self, below: str = ".") -> dict[str, str]:
        """The SHA-256 of each file below a folder of the program, by its relative path."""
        top = self.folder / below
        return {
            path.relative_to(top).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(top.rglob("*"))
            if path.is_file()
        }


def copy_of(program: Path | str, into: Path, name: str = "before") -> Path:
    """A copy of a program (a path, or a name below ``tests/proofs``) as the folder ``name`` of ``into``."""
    source = PROGRAMS / program if isinstance(program, str) else program
    copy = into / name
    shutil.copytree(source, copy, ignore=shutil.ignore_patterns("runs", "__pycache__"))
    return copy


def fix(project: Path, *, unsafe: bool = False, select: Sequence[str] | None = None) -> Outcome:
    """Fix a project in place, as ``--fix`` does; at least one fix must have been applied."""
    config = Config.load(project)
    if select is not None:
        config = replace(config, select=tuple(select))
    limit = Applicability.UNSAFE if unsafe else Applicability.SAFE
    outcome = apply_fixes([project], config, project, limit, write=True)
    assert outcome.applied, "nothing was fixed"
    assert not outcome.notes and not outcome.report.problems, (outcome.notes, outcome.report.problems)
    return outcome


def run(
    project: Path,
    *arguments: str,
    entry: str = "train.py",
    ranks: int = 1,
    environment: Mapping[str, str] | None = None,
    succeeds: bool = True,
) -> Run:
    """Run a program of a project on ``ranks`` processes (gloo) of this machine's CPU."""
    launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"] if ranks > 1 else []
    done = subprocess.run(
        [sys.executable, *launcher, entry, *arguments],
        cwd=project,
        env={
            **os.environ,
            "CUDA_VISIBLE_DEVICES": "",
            "OMP_NUM_THREADS": "1",
            "PYTHONHASHSEED": "0",
            "PYTHONDONTWRITEBYTECODE": "1",
            **(environment or {}),
        },
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    text = done.stdout + done.stderr
    assert (done.returncode == 0) is succeeds, text
    losses = tuple((int(step), float.fromhex(loss)) for step, loss in _STEP.findall(done.stdout))
    return Run(losses, text, project)
