"""docs/pylint.md: its commands run, print what the page shows, and its names are those that pylint takes."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from collected import for_every

from ldlm_lint.families import ALL_FAMILIES, UMBRELLAS

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "pylint.md").read_text(encoding="utf-8")
SNIPPETS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.M | re.S)
COMMANDS = [line for name, text in SNIPPETS if name == "sh" for line in text.splitlines()]
COMMANDS += re.findall(r"`(pylint --load-plugins [^`]+)`", PAGE)


def snippets(language: str) -> list[str]:
    return [text for name, text in SNIPPETS if name == language]


def shown(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command of the page in a folder with the program of the page."""
    (folder / "train.py").write_text(snippets("python")[0], encoding="utf-8")
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYLINTHOME": str(folder / "home"), "LDLM_LINT_CACHE_DIR": str(folder / "cache")}
    words = shlex.split(command)
    assert words[0] == "pylint"
    command_line = [sys.executable, "-m", *words]
    return subprocess.run(command_line, capture_output=True, text=True, cwd=folder, env=environment, check=False)


@for_every("command", COMMANDS)
def test_every_command_is_one_that_pylint_takes(command: str, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    done = shown(command, tmp_path)
    assert done.returncode < 32 and done.stderr == "", done.stdout + done.stderr
    assert "W0012:" not in done.stdout


def test_the_program_gets_the_report_that_is_shown(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    (command,) = (one for one in COMMANDS if "wrong-import-order" in one)
    assert shown(command, tmp_path).stdout.strip() == snippets("text")[0].strip()


def test_the_plugin_is_loaded_from_the_configuration_that_is_shown(tmp_path: Path) -> None:
    loads = snippets("toml")[0]
    assert tomllib.loads(loads)
    (tmp_path / "pyproject.toml").write_text(loads)
    assert "excessive-collective-timeout" in shown("pylint train.py", tmp_path).stdout


def test_the_broken_configuration_gets_the_message_that_is_shown(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(snippets("toml")[1])
    done = shown("pylint --load-plugins ldlm_lint -j2 train.py", tmp_path)
    assert done.stdout.count(snippets("text")[1]) == 1


def test_the_table_has_every_family(tmp_path: Path) -> None:
    named = dict(re.findall(r"^\| `(ldlm-[\w-]+)` \| .*?(?:\((\d\d)\))? \|$", PAGE, re.M))
    assert named == {**{name: family for family, name in UMBRELLAS.items()}, ALL_FAMILIES: ""}
