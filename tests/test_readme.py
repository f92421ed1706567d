"""README and docs/program.md say what the program really does: findings, exit codes, commands, a configuration that loads."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ldlm_lint.cli import main
from ldlm_lint.config import Config

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import trophies  # noqa: E402

README = (ROOT / "README.md").read_text(encoding="utf-8")
CONSOLE = re.compile(r"^```console\n\$ (ldlm-lint[^\n]*)\n(.*?)^```$", re.M | re.S)


def test_the_page_of_the_program_shows_what_is_printed(monkeypatch, capsys):
    (shown,) = CONSOLE.findall((ROOT / "docs" / "program.md").read_text(encoding="utf-8"))
    command, output = shown
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "120")
    main(command.split()[1:])
    assert capsys.readouterr().out.strip() == output.strip()


def test_the_first_command_ends_as_the_readme_says(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    (number, expected) = re.search(r"prints (\d+) findings and ends with\s+exit code (\d)", README).groups()
    code = main(["examples/latent-captions", "--format", "json"])
    assert (str(json.loads(capsys.readouterr().out)["summary"]["findings"]), str(code)) == (number, expected)


def test_the_catches_shown_are_trophies():
    known = {f"{one.repository}/blob/{one.commit}/{one.path}#L{one.line}": one.rule for one in trophies.read(trophies.DATA.read_text(encoding="utf-8"))}
    catches = re.findall(r"\(https://github\.com/([^)]+)\).*?\[([a-z-]+)\]\(docs/rules/", README)
    assert len(catches) == 3
    assert {known[place] for place, _ in catches} == {rule for _, rule in catches}


def test_the_readme_is_short():
    assert len(README.splitlines()) <= 150


@pytest.mark.parametrize("words", sorted({tuple(one.split()) for one in re.findall(r"`ldlm-lint ((?:probe )?[a-z]+)[ `]", README)}), ids=" ".join)
def test_the_readme_names_commands_and_options_that_exist(words, capsys):
    named = re.findall(rf"`ldlm-lint {' '.join(words)}([^`]*)`", README)
    assert main([*words, "--help"]) == 0
    known = re.findall(r"--[a-z-]+", capsys.readouterr().out)
    assert {option for one in named for option in re.findall(r"--[a-z-]+", one.partition(" -- ")[0])} <= set(known)


def test_the_configuration_shown_is_valid(tmp_path):
    (example,) = (one for one in re.findall(r"^```toml\n(.*?)^```$", README, re.M | re.S) if "[tool.ldlm-lint]" in one)
    (tmp_path / "pyproject.toml").write_text(example, encoding="utf-8")
    config = Config.load(tmp_path)
    assert config.target_torch.oldest == (2, 4)
    assert config.options["heartbeat-limit"] == 3600


def test_the_suppression_shown_silences_its_line(tmp_path):
    (line,) = re.findall(r"^```python\n(.*?)^```$", README, re.M | re.S)
    program = (
        "from torch.utils.data import DataLoader\n\n\ndef train(dataset, model, epochs):\n"
        f"    {line}    for epoch in range(epochs):\n        for batch in loader:\n            model(batch).backward()\n"
    )
    (tmp_path / "pyproject.toml").write_text("", encoding="utf-8")
    (tmp_path / "train.py").write_text(program, encoding="utf-8")
    assert main(["--level", "refactor", str(tmp_path)]) == 0
    (tmp_path / "train.py").write_text(program.replace("# ldlm-lint", "# "), encoding="utf-8")
    assert main(["--level", "refactor", str(tmp_path)]) == 1


def test_files_that_the_readme_links_to_exist():
    for target in re.findall(r"\]\(((?!https?:)[^)#]+)", README):
        assert (ROOT / target).exists(), target


def test_the_commands_of_ci_are_the_readme_s():
    printed = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "readme_commands.py")], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert len(printed) == 2
    assert "ldlm-lint examples/latent-captions" in printed[0]
    assert printed[1].endswith("python -m pytest -n auto --dist loadgroup")
