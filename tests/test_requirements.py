"""Which torch a project runs on, by its own requirements."""

from __future__ import annotations

from pathlib import Path

import pytest

from ldlm_lint.config import Config
from ldlm_lint.requirements import TorchRange, floors, torch_range

UNKNOWN = TorchRange()


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


@pytest.mark.parametrize(
    "requirement, expected",
    [
        pytest.param("torch", UNKNOWN, id="bare"),
        pytest.param("torch==2.4.1", TorchRange((2, 4), (2, 4)), id="pinned"),
        pytest.param("torch==2.4.1+cu121", TorchRange((2, 4), (2, 4)), id="local-version"),
        pytest.param("torch>=2.1", TorchRange((2, 1), None), id="from"),
        pytest.param("torch>=1.12", UNKNOWN, id="from-before-all"),
        pytest.param("torch<=2.6", TorchRange(None, (2, 6)), id="up-to"),
        pytest.param("torch>=2.1,<2.5", TorchRange((2, 1), (2, 4)), id="between"),
        pytest.param("torch~=2.3.0", TorchRange((2, 3), (2, 3)), id="compatible"),
        pytest.param("torch==2.*", TorchRange((2, 0), None), id="wildcard"),
        pytest.param("torch[opt] >= 2.2 ; python_version > '3.8'", TorchRange((2, 2), None), id="extra-and-marker"),
        pytest.param("torch==2.2.0 --hash=sha256:abc", TorchRange((2, 2), (2, 2)), id="hash"),
        pytest.param("torch >= 2.2 # for compile", TorchRange((2, 2), None), id="comment"),
        pytest.param("torch==3.0", UNKNOWN, id="unknown-version"),
        pytest.param("torch==1.13.1", UNKNOWN, id="too-old"),
        pytest.param("torchvision==0.15\ntorch-geometric==2.4\ntorch_optimizer==2.3", UNKNOWN, id="other-packages"),
        pytest.param("torch @ https://example.org/torch.whl", UNKNOWN, id="address"),
        pytest.param(
            "torch @ https://example.org/torch-2.2.0%2Bcu118-cp310-cp310-linux_x86_64.whl", TorchRange((2, 2), (2, 2)), id="wheel"
        ),
        pytest.param("  torch>=2.2", TorchRange((2, 2), None), id="indented"),
        pytest.param("torch>=oops", UNKNOWN, id="malformed"),
        pytest.param("# torch==2.4", UNKNOWN, id="commented-out"),
    ],
)
def test_requirements_file(tmp_path: Path, requirement: str, expected: TorchRange) -> None:
    assert torch_range(write(tmp_path, {"requirements.txt": f"numpy\n{requirement}\n"})) == expected


@pytest.mark.parametrize(
    "name, text",
    [
        ("pyproject.toml", '[project]\ndependencies = ["numpy", "torch==2.4.0"]\n'),
        ("pyproject.toml", '[project.optional-dependencies]\ntrain = ["torch==2.4.0"]\n'),
        ("pyproject.toml", '[dependency-groups]\ntrain = ["torch==2.4.0", {include-group = "x"}]\n'),
        ("pyproject.toml", '[tool.poetry.dependencies]\ntorch = "2.4.0"\n'),
        ("pyproject.toml", '[tool.poetry.dependencies]\ntorch = {version = "==2.4.0", source = "cpu"}\n'),
        ("pyproject.toml", '[tool.poetry.group.gpu.dependencies]\ntorch = "2.4.0"\n'),
        ("pyproject.toml", '[tool.poetry.dependencies]\ntorch = "~2.4"\n'),
        ("pyproject.toml", '[tool.poetry.dependencies]\ntorch = "~2.4.1"\n'),
        ("pyproject.toml", '[tool.poetry.dependencies]\ntorch = [{version = "2.4.0", platform = "linux"}, {version = "2.4.1"}]\n'),
        ("Pipfile", '[packages]\ntorch = "==2.4.0"\n'),
        ("Pipfile", '[dev-packages]\ntorch = {version = "==2.4.0", index = "cpu"}\n'),
        ("requirements.in", "torch==2.4.0\n"),
        ("requirements/gpu.in", "torch==2.4.0\n"),
        ("constraints.txt", "torch==2.4.0\n"),
        ("setup.py", 'NEEDED = """\n    numpy\n    torch==2.4.0\n""".split()\n'),
        ("requirements/gpu.txt", "torch==2.4.0\n"),
        ("requirements-dev.txt", "torch==2.4.0\n"),
        ("setup.py", 'setup(install_requires=["numpy", "torch==2.4.0"])\n'),
        ("setup.cfg", "[options]\ninstall_requires =\n    numpy\n    torch==2.4.0\n"),
        ("environment.yml", "dependencies:\n  - pytorch=2.4.0=py3.10_cuda12\n"),
        ("environment.yaml", "dependencies:\n  - pytorch::pytorch=2.4\n"),
        ("environment.yml", "dependencies:\n  - pip:\n    - torch==2.4.0\n"),
        ("uv.lock", '[[package]]\nname = "torch"\nversion = "2.4.0"\n'),
        ("poetry.lock", '[[package]]\nname = "torch"\nversion = "2.4.0+cu121"\n'),
        ("Pipfile.lock", '{"default": {"torch": {"version": "==2.4.0"}}}'),
    ],
)
def test_every_file_that_says_it(tmp_path: Path, name: str, text: str) -> None:
    assert torch_range(write(tmp_path, {name: text})) == TorchRange((2, 4), (2, 4))


def test_a_caret_allows_what_poetry_does(tmp_path: Path) -> None:
    text = '[tool.poetry.dependencies]\ntorch = "^2.1"\n'
    assert torch_range(write(tmp_path, {"pyproject.toml": text})) == TorchRange((2, 1), None)


def test_a_lock_file_decides_over_requirements(tmp_path: Path) -> None:
    lock = '[[package]]\nname = "torch"\nversion = "2.6.0"\n'
    assert torch_range(write(tmp_path, {"uv.lock": lock, "requirements.txt": "torch>=2.0\n"})) == TorchRange((2, 6), (2, 6))


def test_files_for_different_machines_are_all_allowed(tmp_path: Path) -> None:
    files = {"requirements.txt": "torch==2.2.0\n", "requirements-new.txt": "torch==2.5.0\n", "requirements-x.txt": "torch\n"}
    assert torch_range(write(tmp_path, files)) == TorchRange((2, 2), (2, 5))


@pytest.mark.parametrize("name", ["pyproject.toml", "uv.lock", "Pipfile.lock", "Pipfile", "setup.py", "environment.yml"])
def test_a_file_that_is_broken_says_nothing(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"\xff[[{ torch==2.4 = [")
    assert torch_range(tmp_path) == UNKNOWN


def test_a_link_out_of_the_project_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "outside.txt").write_text("torch==2.4.0\n")
    project = tmp_path / "project"
    project.mkdir()
    try:
        (project / "requirements.txt").symlink_to(tmp_path / "outside.txt")
    except OSError as error:
        pytest.skip(f"this system makes no links: {error}")
    assert torch_range(project) == UNKNOWN


def test_the_configuration_wins_and_is_both_ends(tmp_path: Path) -> None:
    write(tmp_path, {"requirements.txt": "torch==2.4.0\n", "pyproject.toml": '[tool.ldlm-lint]\ntarget-torch = "2.7"\n'})
    assert Config.load(tmp_path).target_torch == TorchRange((2, 7), (2, 7))


def test_rules_are_told_what_the_requirements_allow(tmp_path: Path) -> None:
    write(tmp_path, {"requirements.txt": "torch>=2.4\n", "pyproject.toml": ""})
    facts = Config.load(tmp_path).facts
    assert (facts["target-torch"], facts["newest-torch"]) == ((2, 4), None)
    assert Config.load(tmp_path, isolated=True).facts["target-torch"] is None


@pytest.mark.parametrize(
    "name, text, expected",
    [
        ("requirements.txt", "torch>=2.1.0\n", ((2, 1), "torch>=2.1.0")),
        ("requirements.txt", "torch >= 1.13, != 2.0\n", ((1, 13), "torch >= 1.13, != 2.0")),
        ("requirements.txt", "torch==1.13.1\n", ((1, 13), "torch==1.13.1")),
        ("requirements.txt", "torch\n", None),
        ("requirements/gpu.txt", "torch~=2.2\n", ((2, 2), "torch~=2.2")),
        ("pyproject.toml", '[project]\ndependencies = ["torch>=2"]\n', ((2, 0), "torch>=2")),
        ("setup.py", 'setup(install_requires=["torch>1.9"])\n', ((1, 9), "torch>1.9")),
        ("environment.yml", "dependencies:\n  - pytorch >= 1.13\n", ((1, 13), "pytorch >= 1.13")),
        ("environment.yml", "dependencies:\n  - pytorch=1.11.0\n", ((1, 11), "pytorch=1.11.0")),
        ("uv.lock", '[[package]]\nname = "torch"\nversion = "1.13.1"\n', ((1, 13), "torch 1.13")),
    ],
)
def test_the_oldest_torch_of_a_file(tmp_path: Path, name: str, text: str, expected: tuple[object, str] | None) -> None:
    write(tmp_path, {name: text})
    found = [(one.version, one.requirement) for one in floors(tmp_path, tmp_path)]
    assert found == ([expected] if expected else [])


LOCK = '[[package]]\nname = "torch"\nversion = "2.6.0"\n'


@pytest.mark.parametrize(
    "files, expected",
    [
        ({"requirements.txt": "torch>=1.9\n"}, [(1, 9), (2, 6)]),
        ({"requirements.txt": "torch\n"}, [(2, 6)]),
        ({"pyproject.toml": '[project]\ndependencies = ["torch>=2.4"]\n'}, [(2, 4), (2, 6)]),
        ({}, [(2, 6)]),
    ],
)
def test_whoever_installs_without_the_lock_file_may_have_an_older_torch(
    tmp_path: Path, files: dict[str, str], expected: list[tuple[int, int]]
) -> None:
    write(tmp_path, {"uv.lock": LOCK} | files)
    assert sorted(one.version for one in floors(tmp_path, tmp_path)) == expected


@pytest.mark.parametrize(
    "requirement, newest",
    [("<2.3", (2, 2)), ("<=2.2", (2, 2)), ("!=2.3.*,<2.4", (2, 2)), ("<2", (1, 13)), ("<2.6", (2, 5)), ("<3", None), ("!=2.3", None)],
)
def test_without_a_lower_bound_the_newest_torch_counts(tmp_path: Path, requirement: str, newest: tuple[int, int] | None) -> None:
    write(tmp_path, {"requirements.txt": f"torch{requirement}\n"})
    found = [(one.version, one.open) for one in floors(tmp_path, tmp_path)]
    assert found == ([(newest, True)] if newest else [])
