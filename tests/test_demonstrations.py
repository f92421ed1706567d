"""The failure behind a rule, shown by a program: the bad one fails as the rule says, the fixed one does not.

``tests/demonstrations/<symbol>/`` holds ``bad.py`` and ``fixed.py`` (or ``.sh``), two whole programs that differ in the
defect alone and end in seconds on a CPU; other files there are copied beside them. Each says in a comment ``# shows: <regular expression>`` what its output (both streams)
must hold; what the bad one shows must not be in the output of the fixed one, and the other way round. The linter
finds the defect in the bad one and not in the fixed one.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import warm

from ldlm_lint import engine
from ldlm_lint.config import Config
from ldlm_lint.rules import by_symbol

FOLDER = Path(__file__).parent / "demonstrations"
DEMONSTRATIONS = sorted(path.name for path in FOLDER.iterdir() if path.is_dir())
SHOWS = re.compile(r"^# shows: (.+)$", re.M)
LIMIT_S = 120

every_demonstration = pytest.mark.parametrize("symbol", DEMONSTRATIONS)


def shown(symbol: str, name: str) -> str:
    """What a program announces to show, as a regular expression."""
    found = SHOWS.findall((FOLDER / symbol / name).read_text(encoding="utf-8"))
    assert len(found) == 1, f"{symbol}/{name} must hold one line '# shows: ...'"
    return found[0]


def programs(symbol: str) -> tuple[str, str]:
    """The names of the bad and the fixed program."""
    suffix = ".py" if (FOLDER / symbol / "bad.py").is_file() else ".sh"
    return f"bad{suffix}", f"fixed{suffix}"


def output(symbol: str, name: str, folder: Path) -> str:
    """Both streams of a program that runs in a folder of its own."""
    for path in (FOLDER / symbol).iterdir():
        if path.is_file():
            shutil.copy(path, folder)
    tools = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    if name.endswith(".py"):
        _, out, err = warm.run([name], folder, {"PATH": tools}, LIMIT_S)
        return out + err
    environment = os.environ | warm.SURROUNDINGS | {"PATH": tools}
    done = subprocess.run(
        ["bash", name], capture_output=True, text=True, cwd=folder, env=environment, timeout=LIMIT_S, check=False
    )
    return done.stdout + done.stderr


@pytest.mark.torch
@every_demonstration
def test_the_program_shows_the_failure_and_the_fix_ends_it(symbol: str, tmp_path: Path) -> None:
    bad, fixed = programs(symbol)
    for name, other in ((bad, fixed), (fixed, bad)):
        folder = tmp_path / Path(name).stem
        folder.mkdir()
        text = output(symbol, name, folder)
        assert re.search(shown(symbol, name), text), text
        assert not re.search(shown(symbol, other), text), text


@every_demonstration
def test_the_linter_tells_the_two_apart(symbol: str, tmp_path: Path) -> None:
    assert symbol in by_symbol
    for name, expected in zip(programs(symbol), (True, False), strict=True):
        project = tmp_path / Path(name).stem
        project.mkdir()
        (project / "pyproject.toml").write_text("")
        (project / f"train{Path(name).suffix}").write_bytes((FOLDER / symbol / name).read_bytes())
        config = replace(Config.load(project), select=("ALL",))
        report = engine.run([project], config, base=project)
        assert (symbol in {finding.rule for finding in report.findings}) is expected, name
