"""``--diff`` as a command: one patch over all files that `git apply` takes, whatever the files are called and hold."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed"),
    pytest.mark.skipif(sys.platform == "win32", reason="names that Windows refuses, and links"),
]
PROGRAM = b"import torch\n\nscaler = torch.cuda.amp.GradScaler()\nuse(scaler)\n"
FILES = {
    "plain.py": PROGRAM,
    "with blank.py": PROGRAM,
    "b\u00e4r/n\u00e4me \u20ac.py": PROGRAM,
    "quo\"te's.py": PROGRAM,
    "new\nline\ttab.py": PROGRAM,
    "back\\slash.py": PROGRAM,
    "crlf.py": PROGRAM.replace(b"\n", b"\r\n"),
    "no end.py": PROGRAM.rsplit(b"use", 1)[0].rstrip(b"\n"),
    "bom.py": b"\xef\xbb\xbf" + PROGRAM,
    "latin.py": b"# coding: latin-1\nname = '\xe4'\n" + PROGRAM,
    "deep/er/one.py": PROGRAM,
}
COMMAND = [sys.executable, "-m", "ldlm_lint", "--isolated", "--select", "deprecated-amp-api"]


def run(folder: Path, *command: str, data: bytes = b"", code: int = 0) -> bytes:
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(command, cwd=folder, input=data, capture_output=True, env=environment, check=False)
    assert done.returncode == code, done.stderr.decode(errors="replace")
    return done.stdout


def make(top: Path) -> None:
    top.mkdir()
    for name, data in FILES.items():
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    (top / "linked.py").symlink_to("deep/er/one.py")
    run(top, "git", "init", "-q")


def contents(top: Path) -> dict[str, bytes]:
    return {name: (top / name).read_bytes() for name in FILES}


def test_the_patch_makes_what_fix_writes(tmp_path: Path) -> None:
    top, other = tmp_path / "one", tmp_path / "two"
    make(top)
    make(other)
    assert run(top, *COMMAND, "--diff", ".", code=1) == b""
    patch = run(top, *COMMAND, "--diff", "--unsafe-fixes", ".", code=1)
    assert contents(top) == FILES
    run(other, *COMMAND, "--fix", "--unsafe-fixes", ".")
    assert all(data != FILES[name] for name, data in contents(other).items())
    run(top, "git", "apply", "--check", "-", data=patch)
    run(top, "git", "apply", "--whitespace=nowarn", "-", data=patch)
    assert contents(top) == contents(other)
    assert (top / "linked.py").is_symlink()
    run(top, "git", "apply", "-R", "--whitespace=nowarn", "-", data=patch)
    assert contents(top) == FILES


def test_from_a_folder_below_and_through_a_link(tmp_path: Path) -> None:
    top = tmp_path / "one"
    make(top)
    patch = run(top / "deep", *COMMAND, "--diff", "--unsafe-fixes", ".", code=1)
    assert patch.startswith(b"diff --git a/deep/er/one.py b/deep/er/one.py\n")
    assert patch.count(b"diff --git") == 1
    for folder in (top, top / "deep"):
        run(folder, "git", "apply", "--check", "-", data=patch)
    named = run(top, *COMMAND, "--diff", "--unsafe-fixes", "linked.py", "deep", code=1)
    assert named == patch
    # Git refuses a patch through a link, so the patch names the file that the link leads to.
    run(top, "git", "apply", "--check", "-", data=named)


def test_one_patch_over_files_that_one_fix_changes(tmp_path: Path) -> None:
    source = Path(__file__).parent / "fixtures" / "missing-activation-checkpointing" / "bad_package"
    top = tmp_path / "one"
    shutil.copytree(source, top)
    run(top, "git", "init", "-q")
    patch = run(top, *COMMAND[:-2], "--select", "missing-activation-checkpointing", "--diff", "--unsafe-fixes", "--exit-zero", ".")
    assert patch
    run(top, "git", "apply", "--check", "-", data=patch)
