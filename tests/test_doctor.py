"""`ldlm-lint doctor` says what a run uses, without importing it, and warns of what is wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from calling import Enter, Run
from jsonschema import Draft202012Validator

from ldlm_lint import __version__, doctor
from ldlm_lint.cache import place

NAMES = [
    *("ldlm-lint", "Python", "torch", "parsers", "libyaml", "extras", "project root", "configuration", "target torch", "rules"),
    *("baseline", "cache", "git", "journal", "output"),
]


@pytest.fixture
def project(enter: Enter, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    monkeypatch.setenv(place.VARIABLE, str(tmp_path_factory.mktemp("cache")))
    return enter({"pyproject.toml": "[tool.ldlm-lint]\n", "run.sh": "torchrun train.py\n"})


def told(run: Run, *arguments: str) -> dict[str, str]:
    """The facts of a run."""
    return json.loads(run("doctor", *arguments, "--format", "json")[1])["facts"]


def test_every_part_is_named_and_nothing_is_wrong(project: Path, run: Run) -> None:
    code, out, err = run("doctor")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert [line[: len("configuration")].rstrip() for line in lines[: len(NAMES)]] == NAMES
    assert lines[len(NAMES)] == ""
    assert lines[len(NAMES) + 1] == "No problems found."
    assert all(line.startswith("note: ") for line in lines[len(NAMES) + 2 :])


def test_the_document_has_the_same(project: Path, run: Run) -> None:
    document = json.loads(run("doctor", "--format", "json")[1])
    schema = Path(__file__).parent.parent / "docs" / "doctor.schema.json"
    Draft202012Validator(json.loads(schema.read_text(encoding="utf-8"))).validate(document)
    assert document["schema"] == "ldlm-lint-doctor/1"
    assert list(document["facts"]) == NAMES
    facts = document["facts"]
    assert facts["ldlm-lint"].startswith(f"{__version__} in ")
    assert sys.executable in facts["Python"]
    assert "astroid " in facts["parsers"] and "tree-sitter-bash " in facts["parsers"] and "missing" not in facts["parsers"]
    assert facts["configuration"] == (project / "pyproject.toml").as_posix()
    assert facts["target torch"].startswith("any ")
    assert facts["journal"].startswith("none")
    assert document["warnings"] == []


def test_torch_and_the_baseline_are_told_with_where_they_come_from(project: Path, run: Run) -> None:
    (project / "requirements.txt").write_text("torch>=2.1,<2.5\n")
    assert told(run)["target torch"] == "2.1 to 2.4 (requirements.txt: torch>=2.1,<2.5)"
    (project / "pyproject.toml").write_text('[tool.ldlm-lint]\ntarget-torch = "2.6"\nselect = ["72"]\n')
    (project / ".ldlm-lint-baseline.json").write_text("{}")
    facts = told(run)
    assert facts["target torch"] == "2.6 (pyproject.toml:2)"
    assert facts["baseline"].endswith(".ldlm-lint-baseline.json")
    assert not facts["rules"].startswith("96 ")
    (project / "sub").mkdir()
    assert told(run, "sub")["project root"] == facts["project root"]


def test_the_cache_is_measured(project: Path, run: Run) -> None:
    assert ", 0 files, 0.0 MB, writable" in told(run)["cache"]
    run("run.sh")
    assert ", 0 files" not in told(run)["cache"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[tool.ldlm_lint]\n", "[tool.ldlm_lint] is not read; the table is called [tool.ldlm-lint]"),
        ("[ldlm-lint]\n", "[ldlm-lint] is not read"),
        ("[tool.ldlm-lint]\nbad-key = 1\n", "bad-key: unknown key"),
        ("[broken\n", "is not valid TOML"),
    ],
)
def test_a_configuration_that_is_not_read_or_cannot_be_used_is_a_warning(text: str, words: str, project: Path, run: Run) -> None:
    (project / "pyproject.toml").write_text(text)
    code, out, err = run("doctor")
    assert (code, err) == (1, "")
    (warning,) = [line for line in out.splitlines() if line.startswith("warning: ")]
    assert words in warning
    assert "No problems found" not in out


def test_a_cache_that_cannot_be_used_is_a_warning(project: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "taken").write_text("")
    monkeypatch.setenv(place.VARIABLE, str(project / "taken" / "cache"))
    code, out, _ = run("doctor")
    assert code == 1
    assert "NOT writable" in out
    assert "cannot be used, so every run reads all files again" in out


def test_missing_packages_are_told_with_what_installs_them(project: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_version", lambda package: "" if package in ("pygls", "bashlex") else "1.0")
    code, out, _ = run("doctor")
    assert code == 1
    assert "warning: not installed: bashlex; reinstall ldlm-lint" in out
    assert 'note: `ldlm-lint server` needs pygls: python -m pip install ".[server]"' in out
    assert "torch          1.0 (never imported by a check)" in out


def test_a_path_that_is_not_there_is_wrong_usage(project: Path, run: Run) -> None:
    assert run("doctor", "nowhere")[0] == 2


def test_nothing_that_is_examined_is_imported(project: Path) -> None:
    ask = "import sys; from ldlm_lint.cli import main; main(['doctor']); print(*sys.modules, file=sys.stderr)"
    environment = {**os.environ, "PYTHONPATH": str(Path(doctor.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True, env=environment)
    assert not {"torch", "astroid", "pylint", "bashlex", "tree_sitter", "pygls", "matplotlib"} & set(done.stderr.split())
