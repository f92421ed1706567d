"""Which torch a project runs on, by its own requirements."""

from __future__ import annotations

from pathlib import Path

import pytest
from collected import for_every

from ldlm_lint.config import Config
from ldlm_lint.requirements import PYTHON, TORCH, TorchRange
from ldlm_lint.requirements.choice import Choice, chosen
from ldlm_lint.requirements.levels import Levels

UNKNOWN = TorchRange()


def choice(folder: Path, root: Path | None = None) -> Choice:
    return chosen(TORCH, Levels().around(folder.as_posix(), (root or folder).as_posix()))


def torch_range(folder: Path, root: Path | None = None) -> TorchRange:
    found = choice(folder, root)
    return TorchRange(found.oldest, found.newest)


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


@for_every(
    "requirement, expected",
    [
        pytest.param("torch", UNKNOWN, id="bare"),
        pytest.param("torch==2.4.1", TorchRange((2, 4), (2, 4)), id="pinned"),
        pytest.param("torch==2.4.1+cu121", TorchRange((2, 4), (2, 4)), id="local-version"),
        pytest.param("torch>=2.1", TorchRange((2, 1), None), id="from"),
        pytest.param("torch>=1.12", TorchRange((1, 12), None), id="from-torch-1"),
        pytest.param("torch<=2.6", TorchRange(None, (2, 6)), id="up-to"),
        pytest.param("torch>=2.1,<2.5", TorchRange((2, 1), (2, 4)), id="between"),
        pytest.param("torch~=2.3.0", TorchRange((2, 3), (2, 3)), id="compatible"),
        pytest.param("torch==2.*", TorchRange((2, 0), None), id="wildcard"),
        pytest.param("torch[opt] >= 2.2 ; python_version > '3.8'", TorchRange((2, 2), None), id="extra-and-marker"),
        pytest.param("torch==2.2.0 --hash=sha256:abc", TorchRange((2, 2), (2, 2)), id="hash"),
        pytest.param("torch >= 2.2 # for compile", TorchRange((2, 2), None), id="comment"),
        pytest.param("torch==3.0", UNKNOWN, id="unknown-version"),
        pytest.param("torch==1.13.1", TorchRange((1, 13), (1, 13)), id="torch-1"),
        pytest.param("torchvision>=0.15\ntorch-geometric==2.4\ntorch_optimizer==2.3", UNKNOWN, id="other-packages"),
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


@for_every(
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


@for_every("name", ["pyproject.toml", "uv.lock", "Pipfile.lock", "Pipfile", "setup.py", "environment.yml"])
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


@for_every(
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
    found = [(one.floor, one.text) for one in choice(tmp_path).all]
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
    assert sorted(one.floor for one in choice(tmp_path).all) == expected


def test_a_page_is_out_of_date_where_a_requirement_says_otherwise(tmp_path: Path) -> None:
    page = {"README.md": "```\npip install torch==2.1.0\n```\n", "train.py": "import torch\n"}
    assert torch_range(write(tmp_path, page | {"pyproject.toml": '[project]\nname = "a"\ndependencies = ["torch>=2.4"]\n'})) == TorchRange((2, 4), None)
    assert torch_range(write(tmp_path, page | {"pyproject.toml": '[project]\nname = "a"\ndependencies = ["torch>=2.0"]\n'})) == TorchRange((2, 0), (2, 1))


@for_every(
    "requirement, newest",
    [("<2.3", (2, 2)), ("<=2.2", (2, 2)), ("!=2.3.*,<2.4", (2, 2)), ("<2", (1, 13)), ("<2.6", (2, 5)), ("<3", None), ("!=2.3", None)],
)
def test_without_a_lower_bound_the_newest_torch_counts(tmp_path: Path, requirement: str, newest: tuple[int, int] | None) -> None:
    write(tmp_path, {"requirements.txt": f"torch{requirement}\n"})
    found = [(one.floor, one.lower) for one in choice(tmp_path).all]
    assert found == ([(newest, None)] if newest else [])


@for_every(
    "name, text, expected",
    [
        pytest.param("README.md", "Run\n```\npip install torch==1.7.0+cu110 torchvision==0.8.1 -f https://x.org/whl.html\n```\n", (1, 7), id="readme"),
        pytest.param("README.md", "Use `conda install pytorch==1.12.1 torchvision==0.13.1 cudatoolkit=11.3 -c pytorch`.\n", (1, 12), id="readme-conda"),
        pytest.param("requirements.txt", "numpy\ntorchvision==0.13.1+cu113\n", (1, 12), id="built-for-one-torch"),
        pytest.param("requirements.txt", "torchaudio==2.3.0\n", (2, 3), id="the-same-number"),
        pytest.param("requirements.txt", "torch\ntorchvision==0.13.1\ntorchaudio>=0.9\n", (1, 12), id="built-for-one-torch-beside-any"),
        pytest.param("requirements.txt", "torch==2.1.0\ntorchvision==0.13.1\n", (2, 1), id="torch-itself-decides"),
        pytest.param("requirements.txt", "torchvision>=0.8\ntriton==3.1.0\ntorch-scatter==2.0.9\n", None, id="others-that-allow-any"),
        pytest.param("env.yaml", "name: a\ndependencies:\n  - python=3.9\n  - pip:\n    - triton==2.2.0\n    - timm\n", (2, 2), id="required-by-one-torch"),
        pytest.param("env.yaml", "name: a\ndependencies:\n  - python=3.9\n  - torchvision=0.15.2=py39_cu118\n", (2, 0), id="conda-built-for-one-torch"),
        pytest.param("README.md", "# Requirements\n```bash\npython>=3.8\ntorch==1.11 # recommended\nmmcv-full>=1.5.2\ntimm\n```\n", (1, 11), id="readme-lists-requirements"),
        pytest.param("README.md", "```\ntorch==1.11\nmodel = train()\n```\n", None, id="readme-lists-code"),
        pytest.param("README.md", "```\ntorch>=1.11\ntimm\n```\n", None, id="readme-lists-an-open-requirement"),
        pytest.param("docs/INSTALL.md", "$ pip3 install 'torch==1.9.0' \\\n    torchvision\n", (1, 9), id="page-about-the-installation"),
        pytest.param("docs/en/get_started.md", "mamba install -c pytorch pytorch=2.0\n", (2, 0), id="deep-page"),
        pytest.param("README.rst", "    conda create -n env python=3.8 pytorch::pytorch=1.8 -y\n", (1, 8), id="created-environment"),
        pytest.param("README.md", "We test with pytorch=1.9.0 and torch==1.9.\n", None, id="prose"),
        pytest.param("README.md", "# pip install torch==1.7.0\npip install torch\n", None, id="command-in-a-comment"),
        pytest.param("README.md", "pip install torchvision==0.8.1 pytorch-lightning==1.7.0 torch-scatter==2.0.9\n", None, id="other-packages"),
        pytest.param("README.md", "pip install torch>=1.8\n", None, id="open-above"),
        pytest.param("README.md", "pip install torch=={version}\n", None, id="placeholder"),
        pytest.param("notes/ideas.md", "pip install torch==1.7.0\n", None, id="another-page"),
        pytest.param(".github/workflows/test.yml", "jobs:\n  - run: pip install torch==1.7.0+cpu\n", None, id="continuous-integration"),
        pytest.param("Dockerfile", "FROM pytorch/pytorch:1.12.1-cuda11.3-cudnn8-runtime\n", (1, 12), id="image"),
        pytest.param("docker/train/Dockerfile.gpu", "FROM --platform=linux/amd64 docker.io/pytorch/pytorch:2.1.0-cuda12.1-cudnn8-devel AS base\n", (2, 1), id="deep-image"),
        pytest.param("docker/Dockerfile", 'ARG PYTORCH="1.6.0"\nARG CUDA="10.1"\nFROM pytorch/pytorch:${PYTORCH}-cuda${CUDA}-cudnn7-devel\n', (1, 6), id="image-of-an-argument"),
        pytest.param("Dockerfile", "FROM pytorch/pytorch:1.9.0-cuda10.2-cudnn7-runtime\nRUN pip install torch==2.0.1\n", (2, 0), id="installed-over-an-image"),
        pytest.param("Dockerfile", "ARG TORCH=2.2.1\nRUN python -m pip install --no-cache-dir \\\n  torch==${TORCH} torchvision\n", (2, 2), id="version-of-an-argument"),
        pytest.param("Dockerfile", "FROM nvcr.io/nvidia/pytorch:20.12-py3\n", (1, 8), id="image-of-nvidia"),
        pytest.param("Dockerfile", "FROM nvcr.io/nvidia/pytorch:21.11-py3\n", (1, 11), id="image-of-nvidia-between-two"),
        pytest.param("Dockerfile", "FROM nvcr.io/nvidia/pytorch:18.03-py3\n", (1, 2), id="image-of-nvidia-before-all"),
        pytest.param("Dockerfile", "FROM nvcr.io/nvidia/pytorch:26.07-py3\n", None, id="image-of-nvidia-after-all"),
        pytest.param("Dockerfile", "FROM nvcr.io/nvidia/tensorflow:20.12-tf2-py3\n", None, id="image-of-another-framework"),
        pytest.param("Dockerfile", "FROM pytorch/pytorch:latest\n", None, id="newest-image"),
        pytest.param("docker-compose.yml", "services:\n  train:\n    image: pytorch/pytorch:1.13.1-cuda11.6-cudnn8-runtime\n", (1, 13), id="compose"),
        pytest.param("cog.yaml", 'build:\n  gpu: true\n  python_packages:\n    - "ipython==7.21.0"\n    - "torch==1.10.0"\npredict: "predict.py:Predictor"\n', (1, 10), id="cog"),
        pytest.param("cog.yaml", 'build:\n  python_packages: ["torch==2.1.2 --index-url https://x.org/whl", "einops"]\n', (2, 1), id="cog-in-brackets"),
        pytest.param("cog.yaml", "image: pytorch/pytorch:1.9.0-cuda10.2-cudnn7-runtime\nbuild:\n  run:\n    - pip install torch==2.0.1\n", (2, 0), id="cog-runs-pip"),
        pytest.param("cog.yaml", 'build:\n  python_packages:\n    - "torchvision==0.11.1"\n    # - "torch==1.10.0"\n', None, id="cog-without-torch"),
        pytest.param("scripts/install.sh", "#!/bin/bash\nconda install -y pytorch=1.10 -c pytorch\n", (1, 10), id="script"),
        pytest.param("env/train.yml", "name: a\ndependencies: [python=3.9, pytorch=1.12, pip]\n", (1, 12), id="environment-in-brackets"),
        pytest.param("environment.yml", "dependencies:\n  - conda-forge::pytorch-gpu=1.13.1=cuda112py39\n", (1, 13), id="build-of-conda"),
        pytest.param("environment.yml", "dependencies:\n  - pytorch 1.12.1 py3.9_cuda11.3\n", (1, 12), id="blanks"),
        pytest.param("environment.yml", "dependencies:\n  - pip:\n    - https://download.pytorch.org/whl/cu113/torch-1.12.1%2Bcu113-cp39-cp39-linux_x86_64.whl\n", (1, 12), id="wheel-in-conda"),
        pytest.param("environment.yml", "dependencies:\n  - pip:\n    - torch==1.12.1+cu113 --extra-index-url https://x.org/whl\n", (1, 12), id="index-in-conda"),
        pytest.param("environment.yml", "dependencies:\n  # - pytorch=1.7\n  - pytorch-lightning=1.7\n  - torchvision\n  - pytorch-cuda=11.8\n", None, id="none-of-torch"),
        pytest.param("requirements.txt", "torch==2.1.0 -f https://download.pytorch.org/whl/torch_stable.html\n", (2, 1), id="links"),
        pytest.param("requirements.txt", "torch~=2.1\n", None, id="compatible-release-is-open"),
        pytest.param("requirements.txt", "torch==2.1.*\n", (2, 1), id="wildcard"),
        pytest.param("requirements.txt", "torch==1.12.1; sys_platform == 'linux'\ntorch==2.2.0; sys_platform == 'darwin'\n", (1, 12), id="markers"),
        pytest.param("requirements.txt", "-r reqs/base.txt\n", (1, 11), id="included"),
        pytest.param("requirements.txt", "pytorch=1.12.1=py3.9_cuda11.3_cudnn8.3.2_0\n", (1, 12), id="exported-by-conda"),
        pytest.param("gpu_requirements.txt", "torch==1.12.1\n", (1, 12), id="named-otherwise"),
        pytest.param("conda-lock.yml", "package:\n- name: pytorch\n  version: 1.12.1\n  manager: conda\n", (1, 12), id="conda-lock"),
        pytest.param("pixi.toml", '[dependencies]\npytorch = "2.1.*"\n', (2, 1), id="pixi"),
        pytest.param("pyproject.toml", '[tool.poetry.dependencies]\ntorch = {url = "https://x.org/torch-2.1.0-cp310-cp310-linux_x86_64.whl"}\n', (2, 1), id="wheel-in-poetry"),
        pytest.param("setup.py", 'setup(install_requires=[\n    # "torch==1.7",\n    "torch",\n])\n', None, id="commented-out"),
    ],
)
def test_the_version_that_a_file_chooses(tmp_path: Path, name: str, text: str, expected: tuple[int, int] | None) -> None:
    write(tmp_path, {"train.py": "import torch\n", "reqs/base.txt": "torch==1.11.0\n", name: text})
    assert torch_range(tmp_path).newest == expected


@for_every(
    "files, folder, expected",
    [
        pytest.param({"setup.py": 'setup(install_requires=["torch>=1.8"])\n', "environment.yml": "dependencies:\n  - pytorch=1.12.1\n"}, "", ((1, 8), (1, 12)), id="a-lower-bound-chooses-nothing"),
        pytest.param({"requirements.txt": "torch==2.5.1\n", "environment.yml": "dependencies:\n  - pytorch=2.2.2\n"}, "", ((2, 2), (2, 5)), id="two-choices"),
        pytest.param({"requirements.txt": "torch>=2.4\n", "Dockerfile": "FROM pytorch/pytorch:2.2.0-cuda12.1-cudnn8-runtime\n"}, "", ((2, 2), None), id="a-bound-that-the-choice-breaks"),
        pytest.param({"environment.yml": "dependencies:\n  - pytorch=2.2.2\n", "app/requirements.txt": "torch==2.5.1\n", "app/app.py": ""}, "app", ((2, 5), (2, 5)), id="the-nearest"),
        pytest.param({"environment.yml": "dependencies:\n  - pytorch=2.2.2\n", "app/requirements.txt": "torch==2.5.1\n", "app/app.py": ""}, "", ((2, 2), (2, 2)), id="not-that-of-another-program"),
        pytest.param({"environment.yml": "dependencies:\n  - pytorch=2.2.2\n", "app/requirements.txt": "torch>=1.8\n", "app/app.py": ""}, "app", ((1, 8), (2, 2)), id="an-open-bound-inside"),
        pytest.param({"environment.yml": "dependencies:\n  - pytorch=2.2.2\n", "app/requirements.txt": "torch>=2.4\n", "app/app.py": ""}, "app", ((2, 4), None), id="another-open-bound-inside"),
        pytest.param({"uv.lock": LOCK, "environment.yml": "dependencies:\n  - pytorch=2.2.2\n"}, "", ((2, 2), (2, 6)), id="a-choice-beside-a-lock"),
        pytest.param({"docs/conf.py": "", "docs/requirements.txt": "torch==1.7\n", "docs/install.md": "pip install torch==1.9.0\n"}, "", ((1, 9), (1, 9)), id="what-builds-the-documentation"),
        pytest.param({".gitignore": "old/\n", "old/requirements.txt": "torch==1.7\n", ".git/HEAD": ""}, "", (None, None), id="ignored"),
        pytest.param({"sub/.git/HEAD": "", "sub/requirements.txt": "torch==1.7\n"}, "", (None, None), id="another-checkout"),
    ],
)
def test_what_several_files_leave(tmp_path: Path, files: dict[str, str], folder: str, expected: tuple[object, object]) -> None:
    write(tmp_path, {"train.py": "import torch\n"} | files)
    assert torch_range(tmp_path / folder, tmp_path) == expected


@for_every(
    "name, text, expected",
    [
        ("Dockerfile", "FROM python:3.12-slim\n", (3, 12)),
        ("cog.yaml", 'build:\n  python_version: "3.10.4"\n  python_packages:\n    - "torch==2.2.0"\n', (3, 10)),
        ("environment.yml", "dependencies:\n  - python=3.9.16=h7a1cb2a\n", (3, 9)),
        ("pyproject.toml", '[project]\nrequires-python = ">=3.9,<3.13"\n', (3, 12)),
        ("pyproject.toml", '[project]\nrequires-python = ">=3.9"\n', None),
        ("pyproject.toml", '[tool.poetry.dependencies]\npython = "~3.10"\n', (3, 10)),
        (".python-version", "3.12.4\n", (3, 12)),
        ("README.md", "conda create -n x python=3.8\n", (3, 8)),
        ("setup.py", 'setup(python_requires=">=3.8,<3.11")\n', (3, 10)),
    ],
)
def test_the_python_that_a_file_chooses(tmp_path: Path, name: str, text: str, expected: tuple[int, int] | None) -> None:
    write(tmp_path, {name: text})
    assert chosen(PYTHON, Levels().around(tmp_path.as_posix(), tmp_path.as_posix())).newest == expected


def test_a_bound_has_its_line(tmp_path: Path) -> None:
    write(tmp_path, {"environment.yml": "dependencies:\n  - python=3.9\n  - pytorch=1.12.1\n", "Dockerfile": "FROM x\nRUN pip install \\\n    torch==1.12.1\n"})
    assert [(Path(one.path).name, one.line, one.text) for one in choice(tmp_path).bounds] == [
        ("Dockerfile", 3, "torch==1.12.1"),
        ("environment.yml", 3, "pytorch=1.12.1"),
    ]
