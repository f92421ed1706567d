"""Programs that are trained before and after their fixes: what a fix promises is measured, not argued.

``tests/proofs/<name>/`` holds a small training repository that ends in seconds on a CPU. It prints a line
``step <n> loss <float.hex()>`` for each step, so that losses can be compared bit by bit, and writes its files below
``--output`` or the working directory. A test copies it, fixes the copy by the command that users have, runs both and
compares (``python -m pytest -m torch tests/test_proof_*.py``).

A repository that prints for people (the example) runs under an observer: ``tests/proofs/<name>/observe.py``, a program
that takes the entry program as its first argument and prints these lines, and others ``<name> = <number>``.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import warm

from ldlm_lint.config import Config
from ldlm_lint.fixing import Outcome, apply_fixes
from ldlm_lint.model import Applicability

PROGRAMS = Path(__file__).parent / "proofs"
LIMIT_S = 300
_LAUNCH = "launch.json"
_STEP = re.compile(r"^step +(\d+) (?:.* )?loss +(\S+)(?: .*)?$", re.MULTILINE)
_VALUE = re.compile(r"^(\w[\w ]*) = (-?[\d.e+-]+)$", re.MULTILINE)


@dataclass(frozen=True)
class Launch:
    """What a launch script gave its launcher."""

    words: Sequence[str]
    environment: Mapping[str, str]


@dataclass(frozen=True)
class Run:
    """What a program did: the loss of each step, bit for bit, both its streams, its folder, how it was launched."""

    losses: tuple[tuple[int, float], ...]
    output: str
    folder: Path
    launch: Launch | None = None

    def value(self, name: str) -> float:
        """What an observer printed last as ``name = number``; raises KeyError where it printed none."""
        return {key: float(number) for key, number in _VALUE.findall(self.output)}[name]

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
    code, out, err = warm.run([entry, *arguments], project, environment or {}, LIMIT_S, ranks=ranks)
    return _ended(project, code, out, err, succeeds)


def run_script(
    project: Path,
    script: str,
    *arguments: str,
    observer: Path | None = None,
    environment: Mapping[str, str] | None = None,
    dry: bool = False,
) -> Run:
    """Run a launch script of a project under bash, on this machine's CPU.

    Its ``torchrun`` is the real one behind a stub that records what the script gave it (`Run.launch`) and has the
    ``observer``, if there is one, run the entry program. With ``dry`` it records and launches nothing.
    """
    stub = project.parent / f"{project.name}-stubs" / "torchrun"
    stub.parent.mkdir(exist_ok=True)
    words = [sys.executable, PROGRAMS / "torchrun.py", stub.with_name(_LAUNCH), "-" if dry else observer or ""]
    stub.write_text(f'#!/bin/sh\nexec {shlex.join(map(str, words))} "$@"\n', encoding="utf-8")
    stub.chmod(0o755)
    path = os.pathsep.join([str(stub.parent), str(Path(sys.executable).parent), os.environ["PATH"]])
    done = command(project, ["bash", script, *arguments], {**(environment or {}), "PATH": path}, succeeds=True)
    return replace(done, launch=Launch(**json.loads(stub.with_name(_LAUNCH).read_text(encoding="utf-8"))))


def command(project: Path, words: Sequence[str], environment: Mapping[str, str], succeeds: bool) -> Run:
    """Run a command in a project on the CPU, in the same surroundings each time."""
    done = subprocess.run(
        list(words),
        cwd=project,
        env={**os.environ, **warm.SURROUNDINGS, **environment},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    return _ended(project, done.returncode, done.stdout, done.stderr, succeeds)


def _ended(project: Path, code: int, out: str, err: str, succeeds: bool) -> Run:
    assert (code == 0) is succeeds, out + err
    losses = tuple((int(step), _number(loss)) for step, loss in _STEP.findall(out))
    return Run(losses, out + err, project)


def _number(text: str) -> float:
    return float.fromhex(text) if "0x" in text else float(text)
