"""The GitHub Action and the GitLab job: their own steps are run here, under bash, on a small project."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
TEMPLATE = ROOT / "templates" / "ldlm-lint.gitlab-ci.yml"
GITLAB = yaml.safe_load(TEMPLATE.read_text(encoding="utf-8"))
BEAT = "export TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=12000000\ntorchrun train.py\n"
bash_only = pytest.mark.skipif(sys.platform == "win32" or not shutil.which("bash"), reason="the steps are bash")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with one finding, and one in a file whose name is a command to a careless shell."""
    root = tmp_path / "project"
    (root / "jobs").mkdir(parents=True)
    (root / "pyproject.toml").write_text('[tool.ldlm-lint]\nselect = ["excessive-heartbeat-timeout"]\n')
    (root / "run.sh").write_text(BEAT)
    (root / "jobs" / "$(touch owned).sh").write_text(BEAT)
    return root


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A directory of programs with ours in it."""
    folder = tmp_path / "environment" / "bin"
    folder.mkdir(parents=True)
    program = folder / "ldlm-lint"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ldlm_lint "$@"\n')
    program.chmod(0o755)
    return folder


def step(name: str) -> dict[str, Any]:
    """A step of the action."""
    (found,) = [one for one in ACTION["runs"]["steps"] if one.get("id") == name]
    return found


def checked(project: Path, programs: Path, **inputs: str) -> tuple[int, str, dict[str, str], str]:
    """Run the action's check with these inputs: exit code, output, outputs of the step, summary of the job."""
    given = {name: entry["default"] for name, entry in ACTION["inputs"].items()} | inputs
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    for variable, value in step("check")["env"].items():
        (source, name) = re.fullmatch(r"\$\{\{ (inputs|steps\.install\.outputs)\.([\w-]+) \}\}", value).groups()
        environment[variable] = given[name] if source == "inputs" else str(programs)
    output, summary = project.parent / "output", project.parent / "summary"
    environment |= {"GITHUB_OUTPUT": str(output), "GITHUB_STEP_SUMMARY": str(summary)}
    for file in (output, summary):
        file.write_text("")
    # GitHub's `shell: bash`.
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step("check")["run"]]
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)
    pairs = dict(line.split("=", 1) for line in output.read_text().splitlines())
    return done.returncode, done.stdout, pairs, summary.read_text()


@bash_only
def test_the_action_annotates_counts_and_fails(project: Path, programs: Path) -> None:
    code, out, outputs, summary = checked(project, programs, **{"sarif-file": "found.sarif", "comment-file": "comment.md"})

    assert (code, outputs) == (1, {"findings": "2", "exit-code": "1"})
    assert [line.partition(" ")[0] for line in out.splitlines()].count("::warning") == 2
    assert "file=run.sh" in out and "excessive-heartbeat-timeout" in summary
    assert (project / "comment.md").read_text().startswith("## ldlm-lint: 2 findings\n")
    assert len(json.loads((project / "found.sarif").read_text())["runs"][0]["results"]) == 2
    assert not (project / "owned").exists()


@bash_only
def test_the_action_takes_words_and_runs_none_of_them(project: Path, programs: Path) -> None:
    code, _, outputs, _ = checked(project, programs, paths="run.sh", args="--exit-zero")
    assert (code, outputs) == (0, {"findings": "1", "exit-code": "0"})

    code, _, _, _ = checked(project, programs, paths="$(touch owned) ; touch owned", args="`touch owned`")
    assert code in (2, 3) and not (project / "owned").exists()


def test_the_action_pins_what_it_uses_and_puts_no_expression_into_a_command() -> None:
    steps = ACTION["runs"]["steps"]
    assert all(re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", one["uses"]) for one in steps if "uses" in one)
    assert not any("${{" in one.get("run", "") for one in steps)
    assert all(one.get("shell") == "bash" for one in steps if "run" in one)


@bash_only
def test_the_job_for_gitlab_reports_and_fails(project: Path, programs: Path) -> None:
    job = GITLAB["ldlm-lint"]
    # What installs is left out: the program stands where the environment would have it.
    shutil.copytree(programs, project / ".cache" / "environment" / "bin")
    script = [line for line in job["script"] if "pip install" not in line and "-m venv" not in line]
    environment = os.environ | GITLAB["variables"] | {"PYTHONPATH": str(ROOT), "CI_PROJECT_DIR": str(project)}

    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", "\n".join(script)],
        cwd=project,
        env=environment | {"LDLM_LINT_CACHE_DIR": str(project / ".cache" / "ldlm-lint")},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 1, done.stderr
    report = json.loads((project / job["artifacts"]["reports"]["codequality"]).read_text())
    assert sorted(one["location"]["path"] for one in report) == ["jobs/$(touch owned).sh", "run.sh"]


@pytest.mark.network
@pytest.mark.parametrize(
    ("schema", "path"), [("vendor.github-actions", "action.yml"), ("vendor.gitlab-ci", "templates/ldlm-lint.gitlab-ci.yml")]
)
def test_what_is_offered_fits_its_schema(schema: str, path: str) -> None:
    """Needs the extra ``gate``, whose check-jsonschema brings the schemas: python -m pytest -m network."""
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, str(ROOT / path)]
    subprocess.run(command, check=True)


@pytest.mark.network
def test_a_linter_of_workflows_has_nothing_to_say() -> None:
    """Needs the extra ``gate``."""
    program = Path(sys.executable).with_name("zizmor")
    done = subprocess.run([program, "--offline", "--persona", "pedantic", ROOT / "action.yml"], check=False)
    assert done.returncode == 0
