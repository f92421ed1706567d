"""What is offered to gates of others: the pre-commit hooks, the workflow of docs/ci.md and its commands for a repository with old findings."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from ldlm_lint import cli
from ldlm_lint.cli import main
from ldlm_lint.config import Config
from ldlm_lint.configs.detect import SUFFIXES as CONFIGURATIONS
from ldlm_lint.discover import PYTHON_SUFFIXES, kind_of_name
from ldlm_lint.shell.detect import SUFFIXES

ROOT = Path(__file__).resolve().parent.parent
HOOKS = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
CI = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
BEAT = "export TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=12000000\n"
IGNORED = "export NCCL_TIMEOUT=7200\n"
OF_GH = ("--body-file", "--edit-last", "--create-if-none")
LAUNCH = "torchrun train.py\n"
SETTINGS = '[tool.ldlm-lint]\nselect = ["72"]\n'


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^ *```{language}\n(.*?)^ *```$", text, re.M | re.S)


def workflow() -> dict[str, Any]:
    (found,) = [one for one in documented() if "jobs" in one]
    return found


def documented() -> list[Any]:
    return [yaml.safe_load(block) for block in blocks(CI, "yaml")]


def steps() -> list[dict[str, Any]]:
    """The steps of the workflow, and those that do without the action."""
    (plain,) = [one for one in documented() if isinstance(one, list)]
    return [*(step for job in workflow()["jobs"].values() for step in job["steps"]), *plain]


def git(*arguments: str, cwd: Path) -> str:
    identity = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", *identity, *arguments], check=True, capture_output=True, text=True, cwd=cwd)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A git repository with one launch script that has one finding."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    root = tmp_path / "repository"
    root.mkdir()
    (root / "pyproject.toml").write_text(SETTINGS)
    (root / "run.sh").write_text(BEAT + LAUNCH)
    git("init", "-q", "-b", "main", cwd=root)
    git("add", "-A", cwd=root)
    git("commit", "-qm", "first", cwd=root)
    monkeypatch.chdir(root)
    yield root


def test_the_hooks_are_the_two_that_are_documented() -> None:
    assert [hook["id"] for hook in HOOKS] == ["ldlm-lint", "ldlm-lint-fix"]
    assert all(re.search(rf"(?<![\w-]){hook['id']}(?![\w-])", "\n".join(blocks(CI, "yaml"))) for hook in HOOKS)


@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: hook["id"])
def test_a_hook_runs_once_on_the_files_that_the_command_lints(
    hook: dict[str, Any], repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (hook["language"], hook["require_serial"], hook.get("pass_filenames", True)) == ("python", True, True)
    known = [f"a/train{suffix}" for suffix in PYTHON_SUFFIXES | SUFFIXES | set(CONFIGURATIONS)]
    named = ["Dockerfile", "a/Dockerfile.gpu", "docker/train.Dockerfile", ".env", "a/.env.train", "nccl.env", ".deepspeed_env"]
    others = ["a/README.md", "a/train.c", "a/notes.txt", "environment", "LICENSE"]
    assert [name for name in (*known, *named) if not re.search(hook["files"], name)] == []
    assert all(kind_of_name(name) is not None for name in (*known, *named))
    assert [name for name in others if re.search(hook["files"], name)] == []
    program, *arguments = shlex.split(hook["entry"])
    assert program == cli.PROGRAM
    (repository / "run.sh").write_text(BEAT + IGNORED + LAUNCH)
    assert main([*arguments, "run.sh"]) == 1
    assert ("NCCL_TIMEOUT" in (repository / "run.sh").read_text()) is ("--fix" not in arguments)
    capsys.readouterr()


def test_the_workflow_pins_its_actions_and_grants_nothing_it_does_not_need() -> None:
    assert workflow()["permissions"] == {}
    assert [job["permissions"] for job in workflow()["jobs"].values()] == [{"contents": "read"}]
    uses = [step["uses"] for step in steps() if "uses" in step]
    pinned = [one for one in uses if not one.startswith("ldlm-lint/")]
    assert pinned and all(re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", one) for one in pinned)
    inputs = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))["inputs"]
    (own,) = [step for step in steps() if step.get("uses", "").startswith("ldlm-lint/")]
    assert own["with"].keys() <= inputs.keys()
    # An expression inside a command would let a branch's name become one.
    assert not any("${{" in step["run"] for step in steps() if "run" in step)
    (checkout,) = [step["with"] for step in steps() if step.get("uses", "").startswith("actions/checkout@")]
    assert checkout == {"fetch-depth": 0, "persist-credentials": False}


def test_the_comment_on_a_pull_request_needs_two_permissions_and_runs_no_expression() -> None:
    (job,) = [one for one in documented() if isinstance(one, dict) and "steps" in one]
    assert job["permissions"] == {"contents": "read", "pull-requests": "write"}
    own, post = job["steps"]
    inputs = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))["inputs"]
    assert own["with"].keys() <= inputs.keys() and own["with"]["comment-file"] in post["run"]
    assert "${{" not in post["run"] and post["env"].keys() == {"GH_TOKEN", "GH_REPO", "NUMBER"}
    # The token of a fork's pull request may not comment, and its code must not run with one that may.
    assert "head.repo.full_name == github.repository" in post["if"] and "pull_request_target" not in yaml.safe_dump(documented())


@pytest.mark.skipif(sys.platform == "win32", reason="the workflow's shell is bash")
def test_the_workflow_s_command_fails_for_what_a_change_adds(repository: Path, tmp_path: Path) -> None:
    (step,) = [step for step in steps() if step.get("run", "").startswith("ldlm-lint ")]
    assert step["env"] == {"BASE": "${{ github.event.pull_request.base.sha }}"}
    program = tmp_path / "bin" / "ldlm-lint"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ldlm_lint "$@"\n')
    program.chmod(0o755)
    environment = os.environ | {
        "BASE": git("rev-parse", "HEAD", cwd=repository),
        "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
    }

    def gate() -> tuple[int, str]:
        command = ["bash", "-e", "-c", step["run"]]
        done = subprocess.run(command, cwd=repository, env=environment, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout

    assert gate()[0] == 0
    (repository / "run.sh").write_text(BEAT + IGNORED + LAUNCH)
    git("commit", "-qam", "second", cwd=repository)
    code, out = gate()
    assert code == 1
    assert "W7204" in out and "W7201" not in out


def test_the_configuration_shown_is_valid(tmp_path: Path) -> None:
    (example,) = blocks(CI, "toml")
    (tmp_path / "pyproject.toml").write_text(re.sub("^ +", "", example, flags=re.M))
    assert Config.load(tmp_path).baseline == "ci/known-findings.json"


def test_the_commands_for_a_repository_with_old_findings_do_what_they_say(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    named = re.findall(r"`(ldlm-lint[^`]*)`", "".join(re.findall(r"(?m)^\| .*$", CI)))
    accept, check, since, ignore = (shlex.split(command.replace("REF", "HEAD"))[1:] for command in named)
    assert main(check) == 1
    assert main(since) == 0
    assert main(accept) == 0
    assert main(check) == 0
    (repository / "run.sh").write_text("# moved\n" + BEAT + IGNORED + LAUNCH)
    assert main(check) == 1
    assert main(since) == 1
    assert main(ignore) == 0
    assert main(check) == 0
    capsys.readouterr()


def test_every_option_of_docs_ci_exists(capsys: pytest.CaptureFixture[str]) -> None:
    texts = ""
    for command in ("check", "baseline"):
        assert main([command, "--help"]) == 0
        texts += capsys.readouterr().out
    for option in set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", CI)) - {"--load-plugins", "--enable", *OF_GH}:
        assert option in texts, option


@pytest.fixture
def copy_of_ours(tmp_path: Path) -> tuple[Path, str]:
    """This project as pre-commit takes it: a git repository with one commit, and the commit's hash."""
    root = tmp_path / "ours"
    made = ("__pycache__", ".git", ".venv", "venv", "build", "dist", "*.egg-info", ".*_cache", ".hypothesis")
    shutil.copytree(ROOT, root, ignore=shutil.ignore_patterns(*made))
    git("init", "-q", "-b", "main", cwd=root)
    git("add", "-A", cwd=root)
    git("commit", "-qm", "state", cwd=root)
    return root, git("rev-parse", "HEAD", cwd=root)


@pytest.mark.network
@pytest.mark.slow
def test_real_pre_commit(
    repository: Path, copy_of_ours: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pre_commit", reason="needs the gate extra")
    monkeypatch.setenv("PRE_COMMIT_HOME", str(tmp_path / "cache"))
    # What is under test is the installed package, not this checkout.
    monkeypatch.delenv("PYTHONPATH", raising=False)
    ours, revision = copy_of_ours
    configuration = {
        "repos": [{"repo": str(ours), "rev": revision, "hooks": [{"id": hook["id"]} for hook in HOOKS]}],
    }
    (repository / ".pre-commit-config.yaml").write_text(yaml.safe_dump(configuration))

    def run(hook: str, *arguments: str) -> tuple[int, str]:
        command = [sys.executable, "-m", "pre_commit", "run", hook, "--color=never", *arguments]
        done = subprocess.run(command, cwd=repository, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    script = repository / "job.sbatch"
    script.write_text(BEAT + IGNORED + LAUNCH)
    (repository / "notes.zsh").write_text(IGNORED)
    git("add", "-A", cwd=repository)
    code, out = run("ldlm-lint")
    assert code == 1, out
    assert "job.sbatch:2:8" in out and "run.sh" not in out and "zsh" not in out
    assert "exit code: 1" in out
    code, out = run("ldlm-lint-fix")
    assert (code, script.read_text()) == (1, BEAT + LAUNCH), out
    assert "files were modified by this hook" in out
    script.write_text(LAUNCH)
    git("add", "-A", cwd=repository)
    assert run("ldlm-lint")[0] == 0
    assert run("ldlm-lint", "--all-files")[0] == 1
    subprocess.run([sys.executable, "-m", "ldlm_lint", "baseline"], env=os.environ | {"PYTHONPATH": str(ROOT)}, check=True)
    git("add", "-A", cwd=repository)
    code, out = run("ldlm-lint", "--all-files")
    assert code == 0, out
