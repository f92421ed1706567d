"""README shows what the program really prints, names commands that exist, and a configuration that loads."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from ldlm_lint.cli import main
from ldlm_lint.config import Config

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
CONSOLE = re.compile(r"^```console\n\$ (ldlm-lint[^\n]*)\n(.*?)^```$", re.M | re.S)


def test_every_shown_output_is_what_the_command_prints(monkeypatch, capsys):
    shown = CONSOLE.findall(README)
    assert shown
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "120")
    for command, output in shown:
        main(command.split()[1:])
        assert capsys.readouterr().out.strip() == output.strip(), command


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
