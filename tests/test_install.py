"""docs/install.md and what it uses: extras, the container file, and the action, the template and the hooks by path."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import pytest
import yaml

from ldlm_lint import __version__
from ldlm_lint.cli import main
from ldlm_lint.configs import instructions
from ldlm_lint.source import Kind, Source

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import readme_commands  # noqa: E402

PAGE = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
TEMPLATE = yaml.safe_load((ROOT / "templates" / "ldlm-lint.gitlab-ci.yml").read_text(encoding="utf-8"))
IMAGE = ROOT / "Containerfile"
BEAT = "export TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=12000000\ntorchrun train.py\n"
bash_only = pytest.mark.skipif(sys.platform == "win32" or not shutil.which("bash"), reason="the steps are bash")


def section(title: str) -> str:
    """A section of the page."""
    (found,) = re.findall(rf"(?ms)^##+ {re.escape(title)}$(.*?)(?=^##+ |\Z)", PAGE)
    return found


def shown(title: str) -> list[Any]:
    """The YAML of a section."""
    return [yaml.safe_load(block) for block in re.findall(r"(?ms)^```yaml\n(.*?)^```$", section(title))]


def layers(stage: int) -> list[tuple[str, str]]:
    """The instructions of a stage of the container file, without its FROM: keyword and what follows it."""
    stages: list[list[tuple[str, str]]] = []
    for one in instructions.read(Source.read(IMAGE, Kind.DOCKERFILE)):
        if one.keyword == "FROM":
            stages.append([])
        elif stages:
            stages[-1].append((one.keyword, " ".join(one.body.decode().split())))
    assert len(stages) == 2
    return stages[stage]


def copied() -> list[str]:
    """The files and folders of the repository that the image is built from."""
    return [name for keyword, body in layers(0) if keyword == "COPY" for name in body.split()[:-1]]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of this repository's files, as they are now."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    root = tmp_path / "ldlm-lint"
    for name in filter(None, names):
        if (ROOT / name).is_file():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, root / name)
    return root


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with one finding."""
    root = tmp_path / "project"
    root.mkdir()
    (root / "run.sh").write_text(BEAT)
    return root


def clean(**more: str) -> dict[str, str]:
    """The environment without what would let the checkout's package or another environment in."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV", "PYTHONHOME")}
    return kept | more


def test_the_extras_are_those_of_the_package() -> None:
    for_users = re.findall(r"^\| `(\w+)` \|", section("pip"), re.M)
    (sentence,) = re.findall(r"The other extras are for work on ldlm-lint itself: ([^(]*)", section("pip"))
    assert sorted([*for_users, *re.findall(r"`(\w+)`", sentence)]) == sorted(PROJECT["optional-dependencies"])


def test_the_supported_versions_of_python_are_those_of_the_package() -> None:
    listed = [one.rpartition(" ")[2] for one in PROJECT["classifiers"] if re.search(r"Python :: 3\.\d+$", one)]
    assert f"Python {listed[0]} to {listed[-1]}" in PAGE and PROJECT["requires-python"] == f">={listed[0]}"


def test_an_image_is_built_from_nothing_else_than_it_names() -> None:
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert "*" in ignored
    assert sorted(line[1:] for line in ignored if line.startswith("!")) == sorted(copied())
    assert [name for name in copied() if not (ROOT / name).exists()] == []


def test_the_image_runs_the_command_as_a_user_without_rights() -> None:
    last = dict(layers(1))
    assert last["ENTRYPOINT"] == '["ldlm-lint"]' and re.fullmatch(r"[1-9]\d*:[1-9]\d*", last["USER"])
    # The tools of the build stay behind.
    assert [body for keyword, body in layers(1) if keyword == "COPY"] == ["--from=build /opt/ldlm-lint /opt/ldlm-lint"]
    assert "/opt/ldlm-lint/bin:$PATH LDLM_LINT_CACHE_DIR=/tmp/ldlm-lint" in last["ENV"]
    (base,) = re.findall(r"^ARG PYTHON=(\S+)$", IMAGE.read_text(encoding="utf-8"), re.M)
    assert base.split("-")[0] in [one.rpartition(" ")[2] for one in PROJECT["classifiers"]]


def test_the_linter_has_nothing_to_say_of_the_container_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--select", "ALL", "--no-cache", str(IMAGE)]) == 0
    assert "1 file read" in capsys.readouterr().out


def test_the_commands_for_containers_name_what_there_is() -> None:
    build, run = (shlex.split(line) for line in re.findall(r"^podman (?:build|run) .*$", section("Container"), re.M))
    assert (ROOT / build[build.index("--file") + 1]).is_file() and build[build.index("--tag") + 1] in run
    assert f"{run[run.index('--volume') + 1]}".endswith(f":{dict(layers(1))['WORKDIR']}:ro")


def test_the_recipe_is_where_the_page_says() -> None:
    (path,) = re.findall(r"--recipe (\S+)", section("conda"))
    assert (ROOT / path).is_file()


def test_the_workflow_uses_the_action_by_path_and_grants_nothing_it_does_not_need() -> None:
    (workflow,) = shown("GitHub Actions")
    (job,) = workflow["jobs"].values()
    checkout, own = job["steps"]
    assert job["permissions"] == {"contents": "read"} and checkout["with"]["submodules"] is True
    assert re.fullmatch(r"actions/checkout@[0-9a-f]{40}", checkout["uses"])
    assert own["uses"].startswith("./") and own["with"].keys() <= ACTION["inputs"].keys()


def test_the_job_for_gitlab_takes_the_variables_that_are_shown() -> None:
    (pipeline,) = shown("GitLab")
    ours = {name: value for name, value in pipeline["variables"].items() if name.startswith("LDLM_LINT_")}
    assert ours and ours.keys() <= TEMPLATE["variables"].keys()
    assert [Path(one["local"]).name for one in pipeline["include"]] == ["ldlm-lint.gitlab-ci.yml"]


def test_the_local_hook_runs_on_what_the_command_reads() -> None:
    by_path, local = (one["repos"][0] for one in shown("pre-commit"))
    offered = {hook["id"] for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))}
    assert {hook["id"] for hook in by_path["hooks"]} <= offered and by_path["rev"]
    (hook,) = local["hooks"]
    assert local["repo"] == "local" and hook["language"] == "system" and hook["require_serial"]
    assert hook["entry"] == "ldlm-lint check"
    for name in ("train.py", "a.ipynb", "run.sh", "job.sbatch", "c.yaml", "c.yml", "ds.json", "pyproject.toml"):
        assert re.search(hook["files"], name)


@pytest.mark.network
@bash_only
def test_pip_as_the_page_says(checkout: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    follow("pip", checkout, PATH=f"{tmp_path / 'venv' / 'bin'}{os.pathsep}{os.environ['PATH']}")


@pytest.mark.network
@bash_only
@pytest.mark.parametrize("tool", ["uv", "pipx"])
def test_tools_as_the_page_says(tool: str, checkout: Path, tmp_path: Path) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"needs {tool}")
    places = ("UV_TOOL_DIR", "UV_TOOL_BIN_DIR", "PIPX_HOME", "PIPX_BIN_DIR")
    follow(tool, checkout, **{name: str(tmp_path / name) for name in places})
    (program,) = (path for path in tmp_path.glob("*_BIN_DIR/ldlm-lint*"))
    assert subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout == f"ldlm-lint {__version__}\n"


def follow(title: str, checkout: Path, **environment: str) -> None:
    """Run the commands of a section; the one that lints the example must have findings."""
    commands = "\n".join(readme_commands.commands(section(title)))
    assert "exit 1 || test $? -eq 1" in commands
    done = subprocess.run(
        ["bash", "-euxo", "pipefail", "-c", commands], cwd=checkout, env=clean(**environment), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"^Found \d+ findings", done.stdout, re.M)


@pytest.mark.network
@bash_only
def test_the_steps_of_the_image_in_a_fresh_folder(tmp_path: Path, project: Path) -> None:
    """What cannot be tried without an engine is the base image; its Python is the one of a virtual environment here."""
    venv.create(tmp_path / "base", with_pip=True)
    source, target = tmp_path / "source", tmp_path / "opt"
    source.mkdir()
    environment = clean(PATH=f"{tmp_path / 'base' / 'bin'}{os.pathsep}{os.environ['PATH']}")
    for keyword, body in layers(0):
        if keyword == "COPY":
            *names, place = body.split()
            for name in names:
                path = source / (name if place == "./" else place)
                shutil.copytree(ROOT / name, path) if (ROOT / name).is_dir() else shutil.copy2(ROOT / name, path)
        elif keyword == "RUN":
            command = body.replace("/opt/ldlm-lint", str(target))
            subprocess.run(["sh", "-c", command], cwd=source, env=environment, check=True)
    shutil.rmtree(source)

    program = [str(target / "bin" / "ldlm-lint")]
    assert subprocess.run([*program, "--version"], capture_output=True, text=True, check=True).stdout == f"ldlm-lint {__version__}\n"
    done = subprocess.run([*program, "--no-cache", "."], cwd=project, env=clean(), capture_output=True, text=True, check=False)
    assert (done.returncode, "excessive-heartbeat-timeout" in done.stdout) == (1, True)


@pytest.mark.network
@bash_only
def test_the_action_installs_what_is_in_its_folder(checkout: Path, project: Path, tmp_path: Path) -> None:
    (install,) = [step for step in ACTION["runs"]["steps"] if step.get("id") == "install"]
    assert install["env"] == {"VERSION": "${{ inputs.version }}", "ACTION": "${{ github.action_path }}"}
    output = tmp_path / "output"
    environment = clean(VERSION="", ACTION=str(checkout), RUNNER_TEMP=str(tmp_path / "runner"), GITHUB_OUTPUT=str(output))
    subprocess.run(["bash", "-eo", "pipefail", "-c", install["run"]], cwd=project, env=environment, check=True)

    programs = Path(output.read_text().strip().removeprefix("programs="))
    done = subprocess.run([programs / "ldlm-lint", "."], cwd=project, env=clean(), capture_output=True, text=True, check=False)
    assert (done.returncode, "excessive-heartbeat-timeout" in done.stdout) == (1, True)


@pytest.mark.network
@bash_only
def test_the_job_for_gitlab_installs_from_a_folder(checkout: Path, project: Path) -> None:
    job = TEMPLATE["ldlm-lint"]
    (pipeline,) = shown("GitLab")
    shutil.copytree(checkout, project / pipeline["variables"]["LDLM_LINT_SOURCE"])
    (settings,) = re.findall(r"(?ms)^```toml\n(.*?)^```$", section("In CI, without a release"))
    (project / "pyproject.toml").write_text(settings)
    environment = clean(CI_PROJECT_DIR=str(project), LDLM_LINT_CACHE_DIR=str(project / ".cache" / "ldlm-lint"))
    environment |= TEMPLATE["variables"] | pipeline["variables"]

    script = "\n".join(job["script"])
    done = subprocess.run(["bash", "-eo", "pipefail", "-c", script], cwd=project, env=environment, capture_output=True, text=True, check=False)

    assert done.returncode == 1, done.stderr
    assert "run.sh" in done.stdout and "tools/" not in done.stdout
    assert (project / job["artifacts"]["reports"]["codequality"]).is_file()


@pytest.mark.network
@pytest.mark.slow
def test_pre_commit_tries_a_clone(checkout: Path, project: Path, tmp_path: Path) -> None:
    """Needs the extra ``gate``."""
    pytest.importorskip("pre_commit", reason="needs the gate extra")
    identity = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]
    for root in (checkout, project):
        for command in (["init", "-q", "-b", "main"], ["add", "-A"], [*identity, "commit", "-qm", "state"]):
            subprocess.run(["git", *command], cwd=root, check=True)
    (line,) = re.findall(r"^pre-commit (try-repo .*)$", section("pre-commit"), re.M)
    assert (project / shlex.split(line)[1]).resolve() == checkout.resolve()

    done = subprocess.run(
        [sys.executable, "-m", "pre_commit", *shlex.split(line), "--color=never"],
        cwd=project,
        env=clean(PRE_COMMIT_HOME=str(tmp_path / "cache")),
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 1, done.stdout + done.stderr
    assert "run.sh" in done.stdout and "exit code: 1" in done.stdout
