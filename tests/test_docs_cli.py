"""The pages about the command line, its formats and exit codes say what the command does."""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from calling import SURROUNDINGS, Run, every_parser

from ldlm_lint.report.formats import FORMATS

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"


def test_the_page_of_the_command_line_names_every_argument() -> None:
    page = (DOCS / "cli.md").read_text(encoding="utf-8")
    for parser in every_parser():
        section = page.partition(f"\n## {parser.prog}\n")[2].partition("\n## ")[0]
        assert section, parser.prog
        for action in parser._actions:
            if action.help == argparse.SUPPRESS:
                continue
            assert all(option in section for option in action.option_strings if option not in ("-h", "--help"))


def test_pages_and_schema_are_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "gen_cli_docs.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_page_of_exit_codes_has_every_command() -> None:
    page = (DOCS / "exit-codes.md").read_text(encoding="utf-8")
    rows = {name for row in re.findall(r"(?m)^\| (`[^|]*) \|", page) for name in re.findall(r"`([^`]+)`", row)}
    known = {parser.prog.removeprefix("ldlm-lint ") for parser in every_parser()}
    assert known - {"probe"} <= rows


def test_the_page_of_formats_shows_what_is_printed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    for variable in SURROUNDINGS:
        monkeypatch.delenv(variable, raising=False)
    page = (DOCS / "formats.md").read_text(encoding="utf-8")
    shown = re.findall(r"(?ms)^```console\n\$ ldlm-lint ([^\n]*)\n(.*?)^```$", page)
    assert {name for name in FORMATS if any(f"--format {name} " in command for command, _ in shown)} == FORMATS.keys()
    for command, output in shown:
        printed = run(*command.split())[1]
        rest = printed
        for piece in output.strip().split("\n...\n"):
            assert piece in rest, command
            rest = rest.partition(piece)[2]
        if "\n...\n" not in output:
            assert printed.strip() == output.strip()
    for block in re.findall(r"(?ms)^```yaml\n(.*?)^```$", page):
        assert yaml.safe_load(block)
