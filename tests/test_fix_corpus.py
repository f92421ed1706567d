"""The script that fixes copies of real repositories: what it promises of a small one, what it notices, and the corpus."""

from __future__ import annotations

import importlib.util
import os
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from ldlm_lint.config import Config
from ldlm_lint.fixing import apply_fixes
from ldlm_lint.model import Applicability

SCRIPT = Path(__file__).parent.parent / "scripts" / "fix_corpus.py"
TRAIN = b"""import torch\r
from torch.nn.parallel import DistributedDataParallel\r
\r
\r
def train(model, loader):\r
    model = DistributedDataParallel(model.cuda())\r
    optimizer = torch.optim.AdamW(model.parameters())\r
    for batch in loader:\r
        model(batch).mean().backward()\r
        optimizer.step()\r
\r
\r
train(torch.nn.Linear(64, 64), torch.randn(8, 64).split(1))\r
"""
LAUNCH = b"#!/bin/bash\nexport NCCL_TIMEOUT=7200\nexport NCCL_DEBUG=INFO\ntorchrun --nproc_per_node=8 train.py"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """The script as a module."""
    spec = importlib.util.spec_from_file_location("fix_corpus", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules["fix_corpus"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def checkout(tmp_path: Path, script: ModuleType) -> Path:
    """A checkout with carriage returns that git would convert, a link, and files that nothing tracks or that are gone."""
    folder = tmp_path / "real"
    folder.mkdir()
    (folder / "train.py").write_bytes(TRAIN)
    (folder / "launch.sh").write_bytes(LAUNCH)
    (folder / "launch.sh").chmod(0o755)
    (folder / "big.bin").write_bytes(b"\0")
    (folder / ".gitattributes").write_text("*.py text eol=lf\n")
    if sys.platform != "win32":
        (folder / "again.sh").symlink_to("launch.sh")
    script.git(folder, "init", "--quiet")
    script.git(folder, "-c", "core.safecrlf=false", "add", "--all")
    identity = ("-c", "user.name=a", "-c", "user.email=a@localhost")
    script.git(folder, *identity, "commit", "--quiet", "--message", "first")
    (folder / "notes.py").write_text("print 'not tracked'\n")
    (folder / "big.bin").unlink()
    return folder


def test_a_repository_keeps_the_promises(script, checkout, tmp_path):
    before = {path.name: path.read_bytes() for path in checkout.iterdir() if path.is_file()}
    row = script.examine(checkout, tmp_path, ["ALL"], Applicability.UNSAFE)
    assert row.failures == []
    assert row.name == f"real@{script.commit_of(checkout)}"
    assert (row.files, row.rejected) == (2, [])
    assert {"optimizer-not-fused", "debug-environment-left-on"} <= row.fixes.keys()
    assert b"+export NCCL_DEBUG=WARN" in (tmp_path / "real.diff").read_bytes()
    assert {path.name: path.read_bytes() for path in checkout.iterdir() if path.is_file()} == before
    assert script.table([row]).splitlines()[-1].endswith("| 1 of 1 |")


def broken(script: ModuleType, checkout: Path, into: Path, monkeypatch: pytest.MonkeyPatch, after) -> list[str]:
    """The promises that a copy breaks where ``after`` is done to it behind each run of the command."""
    folder = script.copy_of(checkout, into)
    config = replace(Config.load(folder, isolated=True), select=("ALL",))
    outcome = apply_fixes([folder], config, folder, Applicability.UNSAFE, write=False)
    command, runs = script.lint, []

    def lint(folder, *arguments):
        done = command(folder, *arguments)
        runs.append(arguments[0])
        after(folder, runs)
        return done

    monkeypatch.setattr(script, "lint", lint)
    return list(script.promises(folder, outcome, ["--isolated", "--select", "ALL", "--unsafe-fixes", "--exit-zero"]))


def spoil(name: str, data: bytes, at: list[str]):
    """Write a file once these runs of the command are done."""
    return lambda folder, runs: (folder / name).write_bytes(data) if runs == at else None


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (spoil("train.py", b"def f(:\n", ["--fix"]), "train.py no longer parses"),
        (spoil("launch.sh", b"if true; then\n", ["--fix"]), "launch.sh no longer parses"),
        (spoil("train.py", b"pass\n", ["--fix"]), "--diff and --fix differ in train.py"),
        (spoil("train.py", b"pass\n", ["--fix", "--fix"]), "a second run changes train.py"),
        (spoil("train.py", b"pass\n", ["--fix", "--fix", "undo"]), "undo leaves train.py changed"),
        (spoil("left.txt", b"", ["--fix", "--fix", "undo"]), "undo leaves files behind: ?? left.txt"),
    ],
)
def test_a_broken_promise_is_told(script, checkout, tmp_path, monkeypatch, after, expected):
    assert any(expected in one for one in broken(script, checkout, tmp_path / "copy", monkeypatch, after))


def test_a_patch_that_git_refuses_is_told(script, checkout, tmp_path):
    folder = script.copy_of(checkout, tmp_path / "copy")
    config = replace(Config.load(folder, isolated=True), select=("ALL",))
    outcome = apply_fixes([folder], config, folder, Applicability.UNSAFE, write=False)
    wrong = replace(outcome, diff=outcome.diff.replace(b"torch.optim", b"torch_optim"))
    assert any(one.startswith("git apply: ") for one in script.promises(folder, wrong, ["--isolated", "--exit-zero"]))


@pytest.mark.corpus
def test_the_corpus_keeps_the_promises(script, tmp_path, capsys):
    """Every fix on a copy of each folder of ``LDLM_CORPUS``."""
    checkouts = sorted(path for path in Path(os.environ["LDLM_CORPUS"]).iterdir() if path.is_dir())
    rows = [script.examine(path, tmp_path, ["ALL"], Applicability.UNSAFE) for path in checkouts]
    with capsys.disabled():
        print(f"\n{script.table(rows)}")
    assert rows and not [row.name for row in rows if row.failures]
