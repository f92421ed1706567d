"""docs/notebooks.md shows what the command prints, about the notebook that it shows, and the numbers that hold."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from ldlm_lint import notebooks
from ldlm_lint.cli import main
from ldlm_lint.notebooks.order import OF_ORDER
from ldlm_lint.notebooks.text import MAX_CODE

PAGE = (Path(__file__).parent.parent / "docs" / "notebooks.md").read_text(encoding="utf-8")
CONSOLE = re.compile(r"^```console\n\$ ldlm-lint ([^\n]*)\n(.*?)^```$", re.M | re.S)
(NOTEBOOK,) = re.findall(r"^```json\n(.*?)^```$", PAGE, re.M | re.S)


@pytest.mark.parametrize("command, output", CONSOLE.findall(PAGE), ids=lambda text: text[:20])
def test_the_page_shows_what_the_command_prints(command, output, tmp_path, monkeypatch, capfdbinary):
    (tmp_path / "tune.ipynb").write_text(NOTEBOOK, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert main(["check", "--isolated", "--no-cache", *shlex.split(command)]) == 1
    assert capfdbinary.readouterr().out.decode() == output


def test_its_numbers_and_names_are_those_of_the_program():
    assert f"{notebooks.MAX_BYTES // 1_000_000} MB" in PAGE
    assert f"{MAX_CODE // 1_000_000} million characters" in PAGE
    assert set(re.findall(r"`([a-z]+(?:-[a-z]+){2,})`, `([a-z-]+)`, \.\.\.", PAGE)[0]) <= OF_ORDER
