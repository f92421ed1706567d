"""docs/fixes.md shows what the commands really print, one after the other, and names the proofs that there are."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from test_fix_levels import SAFE

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "fixes.md").read_text(encoding="utf-8")
CONSOLE = re.compile(r"^```console\n\$ ([^\n]*)\n(.*?)^```$", re.M | re.S)
TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC")
ROW = re.compile(r"^\| `([\w-]+)` \| ([^|]*) \|$", re.M)


def test_the_session_shown_is_what_the_commands_print(tmp_path):
    project = tmp_path / "latent-captions"
    shutil.copytree(ROOT / "examples" / "latent-captions", project)
    tools = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    session = CONSOLE.findall(PAGE)
    assert len(session) == 2
    for command, output in session:
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=project,
            env={**os.environ, "PATH": tools, "COLUMNS": "120"},
            capture_output=True,
            text=True,
            check=True,
        )
        assert TIME.sub("TIME", done.stdout).strip() == TIME.sub("TIME", output).strip(), command


def test_every_safe_rule_stands_there_with_its_proofs():
    told = {symbol: re.findall(r"`([\w.:]+)`", tests) for symbol, tests in ROW.findall(PAGE)}
    assert told == {symbol: list(evidence.tests) for symbol, evidence in SAFE.items()}


def test_tests_that_the_page_names_exist():
    named = set(re.findall(r"`(test_\w+\.py)", PAGE))
    assert named
    assert [name for name in named if not (ROOT / "tests" / name).is_file()] == []
