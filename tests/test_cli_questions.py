"""Questions that are answered instead of a check: files, settings, rules; and what the pedantic get."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from calling import Enter, Run
from jsonschema import Draft202012Validator

from ldlm_lint.rules import ALL
from ldlm_lint.select import selected_by_layers
from ldlm_lint.settings import config_schema

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
BEAT = "export TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=12000000\ntorchrun train.py\n"


@pytest.fixture
def project(enter: Enter) -> Path:
    return enter({"pyproject.toml": "", "run.sh": BEAT})


def schema(name: str) -> dict[str, object]:
    return json.loads((DOCS / f"{name}.schema.json").read_text(encoding="utf-8"))


def test_show_files_says_what_is_checked_and_as_what(project: Path, run: Run) -> None:
    (project / "train.py").write_text("import torch\n")
    (project / "notes.txt").write_text("")
    code, out, err = run("--show-files")
    assert (code, err) == (0, "")
    assert [line.split() for line in out.splitlines()] == [
        ["run.sh", "shell", "script"],
        ["train.py", "Python"],
        ["2", "files", "(1", "shell", "script,", "1", "Python)."],
    ]
    document = json.loads(run("--show-files", "--format", "json")[1])
    Draft202012Validator(schema("questions")).validate(document)
    assert document["schema"] == "ldlm-lint-files/1"
    assert {"path": "train.py", "kind": "py"} in document["files"]
    assert run("--show-files", "gone")[0] == 3
    assert run("--show-files", "--format", "sarif")[0] == 2
    (project / "pyproject.toml").write_text('[tool.ldlm-lint]\nexclude = ["run.sh"]\n')
    assert "run.sh" not in run("--show-files")[1]


def test_show_settings_says_where_each_value_comes_from(project: Path, run: Run) -> None:
    (project / "pyproject.toml").write_text(
        '[tool.ldlm-lint]\nselect = ["72"]\nheartbeat-limit = 60\nlevel = "warning"\n'
    )
    (project / "requirements.txt").write_text("torch==2.4.1\n")
    code, out, err = run("--show-settings", "--ignore", "W7201", "--level", "error")
    assert (code, err) == (0, "")
    for key, value, origin in (
        ("select", '["72"]', "pyproject.toml:2"),
        ("heartbeat-limit", "60", "pyproject.toml:3"),
        ("ignore", '["W7201"]', "command line"),
        ("level", '"error"', "command line"),
        ("fail-level", '"refactor"', "default"),
        ("target-torch", '"2.4"', "requirements.txt: torch==2.4.1"),
    ):
        assert re.search(rf"(?m)^{key} = {re.escape(value)} +# {re.escape(origin)}$", out), key
    assert "\nexcessive-heartbeat-timeout\n" not in out
    document = json.loads(run("--show-settings", "--format", "json")[1])
    Draft202012Validator(schema("questions")).validate(document)
    assert {"key": "heartbeat-limit", "value": 60, "origin": "pyproject.toml:3"} in document["settings"]
    assert "excessive-heartbeat-timeout" in document["rules"]
    assert {one["key"] for one in document["settings"]} == config_schema(ALL)["properties"].keys()


def test_rules_for_programs(project: Path, run: Run) -> None:
    document = json.loads(run("rules", "--format", "json")[1])
    Draft202012Validator(schema("rules")).validate(document)
    assert [one["name"] for one in document["rules"]] == [rule.symbol for rule in ALL]
    (only,) = json.loads(run("explain", "W7201", "--format", "json")[1])["rules"]
    assert only in document["rules"]
    assert json.loads(run("rules", "72", "--format", "json")[1])["rules"][0]["family"] == "72"
    assert '"72" is a family' in run("explain", "72")[2]


def test_pedantic_applies_what_is_opt_in_and_nothing_else_changes(project: Path, run: Run) -> None:
    quiet, everything = selected_by_layers(ALL, ()), selected_by_layers(ALL, (), opt_in=True)
    assert everything == {rule.symbol for rule in ALL}
    assert everything - quiet == {rule.symbol for rule in ALL if not rule.default}
    settings = json.loads(run("--pedantic", "--show-settings", "--format", "json", "--ignore", "W7201")[1])
    assert set(settings["rules"]) == everything - {"excessive-heartbeat-timeout"}
    (project / "pyproject.toml").write_text('[tool.ldlm-lint]\npedantic = true\nignore = ["dead-config-key"]\n')
    settings = json.loads(run("--show-settings", "--format", "json")[1])
    assert set(settings["rules"]) == everything - {"dead-config-key"}
    settings = json.loads(run("--pedantic", "--select", "73", "--show-settings", "--format", "json")[1])
    assert set(settings["rules"]) >= {rule.symbol for rule in ALL if rule.family == "73"}
