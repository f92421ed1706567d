"""What only the linked program shows is the same for the command, pylint, and the editor, with and without a cache."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from editor import Editor

from ldlm_lint import decision, engine
from ldlm_lint.config import Config

RULE = "host-sync-in-training-loop"
# A registry hands the class out: no file by itself, and no import, leads from the loop to the read.
FILES = {
    "pyproject.toml": "",
    "registry.py": """\
class Registry:
    def __init__(self):
        self.known = {}

    def register(self, cls):
        self.known[cls.__name__] = cls
        return cls

    def build(self, name):
        return self.known[name]()


SCALERS = Registry()
""",
    "scalers.py": """\
from registry import SCALERS


@SCALERS.register
class Measured:
    def __call__(self, values):
        return values / self.size(values)

    def size(self, values):
        return values.abs().max().item()
""",
    "train.py": """\
import argparse

import torch

import scalers
from registry import SCALERS


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--scaler", default="Measured")
    args = parser.parse_args()
    scaler = SCALERS.build(args.scaler)
    model = torch.nn.Linear(8, 8).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, fused=True)
    for _ in range(1000):
        batch = torch.randn(8, 8, device="cuda")
        loss = scaler(model(batch)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


main()
""",
}
FOUND = {("scalers.py", 10, RULE)}
QUIET = FILES["train.py"].replace("SCALERS.build(args.scaler)", "torch.abs")
Found = set[tuple[str, int, str]]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    package = str(Path(engine.__file__).parent.parent)
    environment = os.environ | {
        "PYTHONPATH": package,
        "PYLINTHOME": str(folder.parent / "home"),
        "LDLM_LINT_CACHE_DIR": str(folder.parent / "cache"),
    }
    done = subprocess.run(
        [sys.executable, "-m", *arguments], capture_output=True, text=True, cwd=folder, env=environment, check=False
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done


def check(folder: Path, *arguments: str) -> Found:
    """What the command finds of the rule."""
    findings = json.loads(run(folder, "ldlm_lint", "check", "--format", "json", *arguments).stdout)["findings"]
    return {(one["path"], one["line"], one["rule"]) for one in findings if one["rule"] == RULE}


def pylint(folder: Path, *arguments: str) -> Found:
    """What pylint says of the rule."""
    options = ["--load-plugins=ldlm_lint", "--disable=all", f"--enable={RULE}", "-fjson"]
    messages = json.loads(run(folder, "pylint", *options, *arguments).stdout)
    return {(one["path"], one["line"], one["symbol"]) for one in messages if one["symbol"] == RULE}


def test_no_other_analysis_finds_it(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def found() -> list[str]:
        return [one.rule for one in engine.run([project], Config.load(project), base=project).findings]

    assert found() == [RULE]
    monkeypatch.setattr(decision, "found_by_program", lambda *_: iter(()))
    assert found() == []


def test_the_command_with_and_without_a_cache(project: Path) -> None:
    assert check(project, "--no-cache") == FOUND
    assert check(project) == FOUND
    assert check(project) == FOUND


@pytest.mark.parametrize("jobs", ["-j1", "-j2"])
def test_pylint(project: Path, jobs: str) -> None:
    assert pylint(project, jobs, "registry.py", "scalers.py", "train.py") == FOUND


def test_a_file_that_is_linted_by_itself_is_one_of_its_program(project: Path) -> None:
    assert check(project, "--no-cache", "scalers.py") == FOUND
    assert pylint(project, "-j1", "scalers.py") == FOUND
    assert check(project, "--no-cache", "train.py") == set()


def test_a_change_of_one_file_changes_what_is_found_in_another(project: Path) -> None:
    assert check(project) == FOUND
    (project / "train.py").write_text(QUIET, encoding="utf-8")
    assert check(project) == set()
    (project / "train.py").write_text(FILES["train.py"], encoding="utf-8")
    assert check(project) == FOUND
    (project / "registry.py").write_text(FILES["registry.py"].replace("self.known[name]()", "None"), encoding="utf-8")
    assert check(project) == check(project, "--no-cache") == set()


def test_a_comment_silences_it_and_one_without_need_is_told(project: Path) -> None:
    text = FILES["scalers.py"].replace(".item()", f".item()  # ldlm-lint: ignore[{RULE}]")
    (project / "scalers.py").write_text(text, encoding="utf-8")
    assert check(project, "--no-cache") == set()
    assert pylint(project, "-j1", "scalers.py", "train.py") == set()


@pytest.fixture
def editor(project: Path) -> Iterator[Editor]:
    editor = Editor()
    editor.start(project)
    yield editor
    assert editor.leave() == 0


def test_the_editor_sees_it_and_what_stands_in_a_buffer_counts(project: Path, editor: Editor) -> None:
    train, scalers = project / "train.py", project / "scalers.py"
    assert [one.range.start.line + 1 for one in editor.open(scalers) if one.code == RULE] == [10]
    editor.open(train)
    editor.type(train, QUIET)
    editor.until(lambda: all(one.code != RULE for one in editor.published[scalers.as_uri()][-1].diagnostics) or None)


INSIDE = """\
#!/bin/bash
python - <<'EOF'
from torch.utils.data import DataLoader
import torch


def main(model, optimizer, data):
    loader = DataLoader(data, 8, num_workers=4, pin_memory=True, prefetch_factor=4)
    for _ in range(4):
        for batch in loader:
            model(batch).backward()
            optimizer.step()
EOF
python -c 'from torch.utils.data import DataLoader
def main(data): return DataLoader(data, num_workers=0, multiprocessing_context="spawn")'
"""


def test_python_inside_of_a_script_is_a_program(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    script = tmp_path / "run.sh"
    script.write_text(INSIDE)
    report = engine.run([tmp_path], Config.load(tmp_path), base=tmp_path)
    found = {(one.rule, one.span.path, INSIDE.encode()[: one.span.start].count(b"\n") + 1) for one in report.findings}
    assert found == {
        ("dataloader-without-persistent-workers", script.as_posix(), 8),
        ("dataloader-worker-options-without-workers", script.as_posix(), 15),
    }
    assert all(edit.span.path == script.as_posix() for one in report.findings if one.fix for edit in one.fix.edits)


def test_what_does_not_parse_gets_no_fix(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "train.py").write_text("from torch.utils.data import DataLoader\nl = DataLoader(x, prefetch_factor=4)\nif True\n")
    report = engine.run([tmp_path], Config.load(tmp_path), base=tmp_path)
    fixes = {one.rule: one.fix for one in report.findings}
    assert fixes["dataloader-worker-options-without-workers"] is None
