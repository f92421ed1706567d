"""`ldlm-lint check - --stdin-filename PATH`: a text that is piped in, linted and fixed as the file at PATH."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from editor_project import AMP, AMP_FIXED, DATA, PYPROJECT, SCRIPT, TRAIN

from ldlm_lint.cli import main

LOOP = TRAIN.replace("    for epoch in range(epochs):\n        sampler.set_epoch(epoch)\n", "    if sampler:\n")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in {"data.py": DATA, "train.py": TRAIN, "pyproject.toml": PYPROJECT}.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def check(capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch):
    def run(data: bytes | str, *arguments: str) -> tuple[int, bytes, str]:
        raw = data.encode() if isinstance(data, str) else data
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw)))
        code = main(list(arguments))
        said = capfdbinary.readouterr()
        return code, said.out, said.err.decode()

    return run


def rules(out: bytes) -> list[str]:
    return [one["rule"] for one in json.loads(out)["findings"]]


def test_the_buffer_counts_and_the_project_around_it(root: Path, check) -> None:
    code, out, _ = check(DATA.replace("pin_memory=True", ""), "-", "--stdin-filename", "data.py", "--format", "json")
    (one, other, pinned) = json.loads(out)["findings"]
    assert code == 1 and {one["path"], other["path"], pinned["path"]} == {"data.py"}
    # The loop stands in a file on disk.
    assert "train.py:10" in " ".join([one["message"], other["message"], pinned["message"]])
    assert (root / "data.py").read_text() == DATA


@pytest.mark.parametrize("name", ["new.py", "pkg/sub/new.py", "job.sbatch", "Dockerfile", "train", "run"])
def test_the_file_need_not_exist(root: Path, check, name: str) -> None:
    text = {"job.sbatch": SCRIPT, "run": SCRIPT, "Dockerfile": "FROM x\nENV NCCL_ASYNC_ERROR_HANDLING=1\n"}.get(
        name, "#!/usr/bin/env python\n" + AMP
    )
    code, out, _ = check(text, "--stdin-filename", name, "--format", "json")
    (found,) = json.loads(out)["findings"]
    assert code == 1 and found["path"] == name
    assert not (root / name).exists()


def test_every_format_names_the_file(root: Path, check) -> None:
    for form in ("text", "concise", "github", "gitlab", "junit", "markdown", "sarif"):
        code, out, _ = check(AMP, "-", "--stdin-filename", "sub/new.py", "--format", form)
        assert code == 1 and b"sub/new.py" in out and b"deprecated-amp-api" in out, form


@pytest.mark.parametrize(("text", "rule"), [(AMP, "deprecated-amp-api"), (SCRIPT, "deprecated-nccl-variable")])
def test_without_a_name_the_first_line_tells(root: Path, check, text: str, rule: str) -> None:
    code, out, _ = check(text, "-", "--format", "json")
    assert (code, rules(out)) == (1, [rule])


def test_fix_writes_the_text_to_stdout_and_the_rest_to_stderr(root: Path, check) -> None:
    code, out, err = check(AMP.replace("\n", "\r\n"), "-", "--stdin-filename", "amp.py", "--fix")
    assert (code, out.decode()) == (0, AMP_FIXED.replace("\n", "\r\n"))
    assert "Fixed 1 finding" in err and not (root / ".ldlm-lint").exists()
    code, out, err = check(DATA, "--stdin-filename", "data.py", "--fix", "--format", "concise")
    assert (code, out.decode()) == (1, DATA) and "data.py:5:12" in err
    code, out, _ = check(DATA, "--stdin-filename", "data.py", "--fix", "--unsafe-fixes")
    assert code == 0 and b"persistent_workers=True" in out and (root / "data.py").read_text() == DATA


def test_a_notebook_is_fixed_in_its_cells(root: Path, check) -> None:
    def notebook(code: str) -> str:
        cells = [{"cell_type": "markdown", "source": ["# Scaling"]}, {"cell_type": "code", "source": code.splitlines(True)}]
        return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1) + "\n"

    code, out, _ = check(notebook(AMP), "-", "--stdin-filename", "amp.ipynb", "--fix")
    assert code == 0 and json.loads(out) == json.loads(notebook(AMP_FIXED))
    code, out, _ = check("{", "-", "--stdin-filename", "amp.ipynb", "--fix")
    assert (code, out) == (3, b"{")


def test_diff_writes_a_patch(root: Path, check) -> None:
    code, out, _ = check(AMP, "--stdin-filename", "amp.py", "--diff")
    assert code == 1 and b"--- a/amp.py\n+++ b/amp.py\n" in out and out.count(b"\n+    ") == 1
    assert check(AMP_FIXED, "--stdin-filename", "amp.py", "--diff")[:2] == (0, b"")


@pytest.mark.parametrize("name", ["excluded/amp.py", "package.json"])
def test_an_excluded_file_is_echoed(root: Path, check, name: str) -> None:
    (root / "pyproject.toml").write_text('[tool.ldlm-lint]\nexclude = ["excluded/"]\n')
    assert check(AMP, "--stdin-filename", name, "--fix")[:2] == (0, AMP.encode())
    code, out, _ = check(AMP, "--stdin-filename", name, "--format", "json")
    assert (code, rules(out)) == (0, [])


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", 0),
        (b"\n", 0),
        (b"\xef\xbb\xbf" + AMP_FIXED.encode(), 0),
        (b"x = '\xff'\n", 3),
        (b"\x00\x01\x02", 3),
        (b"# coding: latin-1\nx = '\xe9'\n", 0),
        (b"def f(:\n", 1),
    ],
)
def test_odd_bytes_come_back_as_they_are(root: Path, check, data: bytes, code: int) -> None:
    assert check(data, "--stdin-filename", "odd.py", "--fix")[:2] == (code, data)


def test_settings_and_comments_hold(root: Path, check) -> None:
    (root / "pyproject.toml").write_text(PYPROJECT + 'per-file-ignores = { "old/" = ["deprecated-amp-api"] }\n')
    assert check(AMP, "--stdin-filename", "old/amp.py", "--format", "json")[0] == 0
    silenced = AMP.replace("GradScaler()\n", "GradScaler()  # ldlm-lint: ignore[deprecated-amp-api] later\n")
    assert check(silenced, "--stdin-filename", "amp.py")[0] == 0
    assert check(AMP, "--stdin-filename", "amp.py", "--ignore", "W7801")[0] == 0
    (root / "amp.py").write_text(AMP)
    assert main(["baseline", "amp.py"]) == 0
    assert check(AMP, "--stdin-filename", "amp.py")[0] == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("-", "data.py"),
        ("data.py", "--stdin-filename", "train.py"),
        ("--stdin-filename", "."),
        ("-", "--add-ignores"),
        ("-", "--watch"),
        ("-", "--since", "HEAD"),
        ("-", "--fix", "--interactive"),
        ("--stdin-filename", "x.py", "--selct", "ALL"),
    ],
)
def test_what_makes_no_sense_is_refused(root: Path, check, arguments: tuple[str, ...]) -> None:
    code, out, err = check(AMP, *arguments)
    assert (code, out) == (2, b"") and err.startswith("ldlm-lint: error: ")


def test_the_program_itself(root: Path) -> None:
    command = [sys.executable, "-m", "ldlm_lint", "-", "--stdin-filename", "amp.py", "--fix"]
    done = subprocess.run(command, input=AMP.encode(), capture_output=True, check=False)
    assert (done.returncode, done.stdout.decode()) == (0, AMP_FIXED)
