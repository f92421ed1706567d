"""docs/probe.md shows what the commands print of the evidence that is checked in, and names options that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from collected import for_every

from ldlm_lint import cli
from ldlm_lint.commands import probe
from ldlm_lint.evidence import files
from ldlm_lint.rules import by_symbol

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


@for_every("command", SHELL)
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


def test_each_verdict_that_a_gpu_alone_can_settle_is_listed_with_its_command():
    page = (ROOT / "docs" / "evidence" / "gpu.md").read_text(encoding="utf-8")
    rows = {name: (said, commands) for name, said, commands in re.findall(r"^\| `([\w-]+)` \| (.+) \| (.+) \|$", page, re.M)}
    bound = {name for name, rule in by_symbol.items() if rule.probe and (rule.probe.device_bound or rule.probe.bound_experiment)}
    # What a loader is waited for is bound by its verdict, not by its rule: a step on the CPU has another length.
    assert rows.keys() == bound | {"dataloader-in-main-process", "dataloader-without-prefetch"}
    for name, (said, commands) in rows.items():
        probe = by_symbol[name].probe
        assert said == probe.confirms
        assert not probe.experiment or f"`ldlm-lint probe --only {probe.experiment}`" in commands
        assert ("`ldlm-lint probe run -- CMD`" in commands) is (not probe.bound_experiment)
