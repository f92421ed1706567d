"""docs/probe.md shows what the commands print of the evidence that is checked in, and names options that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ldlm_lint import cli
from ldlm_lint.commands import probe
from ldlm_lint.evidence import files

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "probe.md").read_text(encoding="utf-8")
CONSOLE = re.findall(r"^```console\n\$ (ldlm-lint[^\n]*)\n(.*?)^```$", PAGE, re.M | re.S)
SHELL = re.findall(r"^(ldlm-lint [^\n#]*)", "".join(re.findall(r"^```sh\n(.*?)^```$", PAGE, re.M | re.S)), re.M)


@pytest.mark.parametrize(("command", "output"), CONSOLE)
def test_the_output_is_what_the_command_prints(command, output, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "120")
    cli.main(command.split()[1:])
    assert capsys.readouterr().out.strip() == output.strip()


def test_both_examples_are_there():
    assert len(CONSOLE) == 2


@pytest.mark.parametrize("command", SHELL)
def test_the_command_is_one(command):
    words = command.split()[1:]
    if words[0] == "probe":
        words = ["probe", *probe.spelt_out(words[1:])]
    assert cli.parser_of(words[:1]).parse_args(words).command.name == words[0]


def test_the_evidence_is_of_the_example_as_it_is_and_names_no_machine():
    found = files.read(ROOT / "docs" / "evidence" / "latent-captions")
    assert [one.run.rank for one in found] == [0, 1]
    assert {one.run.host for one in found} == {""}
    assert {one.run.root for one in found} == {"/home/user/latent-captions"}
