"""A fix that writes something newer than a torch that the project allows is only shown, with the reason."""

from __future__ import annotations

from pathlib import Path

import pytest
from collected import for_every

from ldlm_lint import engine
from ldlm_lint.config import Config
from ldlm_lint.model import Applicability, Fix
from ldlm_lint.python.torch_branches import older_torch
from ldlm_lint.python.tree import parse
from ldlm_lint.source import Kind, Source

TRAIN = "import torch\n\n\ndef main(model):\n    scaler = torch.cuda.amp.GradScaler()\n    scaler.update()\n"
LOCK = '[[package]]\nname = "torch"\nversion = "2.6.0"\n'
COMPILES = 'import torch\n\nFAST = hasattr(torch, "compile")\n'


def fix_of(root: Path, files: dict[str, str], rule: str = "deprecated-amp-api") -> Fix:
    """The fix of the only finding of a rule in a project of these files."""
    for name, text in ({"pyproject.toml": ""} | files).items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    report = engine.run([root], Config.load(root), base=root)
    (found,) = [finding for finding in report.findings if finding.rule == rule]
    assert found.fix is not None
    return found.fix


@for_every(
    "files, level, reason",
    [
        pytest.param({}, Applicability.UNSAFE, "set `target-torch`", id="nothing-is-known"),
        pytest.param({"requirements.txt": "torch>=2.4\n"}, Applicability.SAFE, "", id="new-enough"),
        pytest.param(
            {"requirements.txt": "torch>=2.1.0\n"},
            Applicability.DISPLAY,
            "requirements.txt allows torch 2.1 (torch>=2.1.0), but torch.amp.GradScaler needs torch 2.3",
            id="too-old",
        ),
        pytest.param({"requirements.txt": "torch>=1.12\n"}, Applicability.DISPLAY, "allows torch 1.12", id="torch-1"),
        pytest.param(
            {"requirements.txt": "torch>=2.4\n", "environment.yml": "dependencies:\n  - pytorch >= 1.13\n"},
            Applicability.DISPLAY,
            "environment.yml allows torch 1.13",
            id="one-of-two-files",
        ),
        pytest.param(
            {"requirements.txt": "torch>=2.4\n", "docker/requirements.txt": "torch==2.2.0\n"},
            Applicability.DISPLAY,
            "docker/requirements.txt allows torch 2.2",
            id="a-folder-without-code",
        ),
        pytest.param(
            {"requirements.txt": "torch>=2.4\n", "demo/requirements.txt": "torch==2.2.0\n", "demo/app.py": "print(1)\n"},
            Applicability.SAFE,
            "",
            id="another-program",
        ),
        pytest.param(
            {"requirements.txt": "torch>=2.4\n", "demo/requirements.txt": "torch==2.2.0\n", "demo/app.py": "import train\n"},
            Applicability.DISPLAY,
            "demo/requirements.txt allows torch 2.2",
            id="a-program-that-uses-it",
        ),
        pytest.param(
            {"uv.lock": LOCK, "pyproject.toml": '[project]\ndependencies = ["torch>=1.13"]\n'},
            Applicability.DISPLAY,
            "pyproject.toml allows torch 1.13 (torch>=1.13)",
            id="a-lock-file-beside-an-older-requirement",
        ),
        pytest.param({"uv.lock": LOCK, "requirements.txt": "torch>=2.4\n"}, Applicability.SAFE, "", id="a-lock-file-beside-a-new-one"),
        pytest.param({"uv.lock": LOCK, "requirements.txt": "torch\n"}, Applicability.SAFE, "", id="a-lock-file-beside-no-bound"),
        pytest.param(
            {"requirements.txt": "torch>=2.4\n", "envs/train.yml": "name: a\ndependencies:\n  - pytorch=1.13\n"},
            Applicability.DISPLAY,
            "envs/train.yml allows torch 1.13 (pytorch=1.13)",
            id="a-conda-environment-of-any-name",
        ),
        pytest.param(
            {"requirements.txt": "torch>=2.4\n", "configs/train.yml": "packages:\n  - pytorch=1.13\n"},
            Applicability.SAFE,
            "",
            id="a-list-that-is-no-environment",
        ),
        pytest.param(
            {"train.py": f"import other\n{TRAIN}", "other.py": COMPILES, "requirements.txt": "torch<2.6\n"},
            Applicability.DISPLAY,
            "other.py:3 has a branch for torch before 2.0",
            id="an-upper-bound-does-not-rule-the-branch-out",
        ),
        pytest.param({"other.py": COMPILES}, Applicability.UNSAFE, "target-torch", id="a-branch-of-another-program"),
        pytest.param(
            {"train.py": f"import other\n{TRAIN}", "other.py": COMPILES},
            Applicability.DISPLAY,
            "other.py:3 has a branch for torch before 2.0",
            id="a-branch-of-the-program",
        ),
        pytest.param(
            {"train.py": f"import other\n{TRAIN}", "other.py": COMPILES, "requirements.txt": "torch>=2.4\n"},
            Applicability.SAFE,
            "",
            id="requirements-rule-the-branch-out",
        ),
        pytest.param(
            {"pyproject.toml": '[tool.ldlm-lint]\ntarget-torch = "2.4"\n', "requirements.txt": "torch>=2.1.0\n"},
            Applicability.SAFE,
            "",
            id="target-torch-decides",
        ),
    ],
)
def test_what_the_project_allows_decides(tmp_path: Path, files: dict[str, str], level: Applicability, reason: str) -> None:
    fix = fix_of(tmp_path, {"train.py": TRAIN} | files)
    assert fix.applicability is level
    assert reason in fix.reason
    assert "set `target-torch`" not in fix.reason or level is Applicability.UNSAFE
    assert bool(fix.reason) == bool(reason)


OPTIMIZER = """import torch


def main(model, loader):
    optimizer = torch.optim.{name}(model.cuda().parameters(), lr=0.1)
    for batch in loader:
        model(batch.cuda()).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
"""
CHECKPOINT = """from torch.utils.checkpoint import checkpoint


def run(layer, x):
    return checkpoint(layer, x)
"""


@pytest.mark.parametrize(
    "rule, files, needed",
    [
        ("optimizer-not-fused", {"train.py": OPTIMIZER.format(name="AdamW"), "requirements.txt": "torch>=1.12\n"}, "AdamW(fused=)"),
        ("checkpoint-without-use-reentrant", {"model.py": CHECKPOINT, "requirements.txt": "torch>=1.9\n"}, "checkpoint(use_reentrant=)"),
        ("deprecated-launcher", {"run.sh": "python -m torch.distributed.launch --nproc_per_node=2 train.py\n", "train.py": "import torch\n", "requirements.txt": "torch>=1.8\n"}, "torchrun"),
        ("deprecated-nccl-variable", {"run.sh": "export NCCL_ASYNC_ERROR_HANDLING=1\ntorchrun train.py\n", "train.py": "import torch\n", "uv.lock": LOCK, "requirements.txt": "torch>=1.13\n"}, "TORCH_NCCL_* variables"),
    ],
)
def test_every_fix_with_something_new_asks(tmp_path: Path, rule: str, files: dict[str, str], needed: str) -> None:
    fix = fix_of(tmp_path, files, rule)
    assert fix.applicability is Applicability.DISPLAY
    assert f"but {needed}" in fix.reason


@for_every(
    "code, before",
    [
        ('if torch.__version__ >= "2.0":\n    fast()\nelse:\n    slow()', (2, 0)),
        ('from packaging import version\nOLD = version.parse(torch.__version__) < version.parse("2.1.0")', (2, 1)),
        ('v = torch.__version__.split(".")\nif int(v[0]) >= 2:\n    fast()', (2, 0)),
        ('MAJOR = int(torch.__version__.split(".")[0])\nif MAJOR > 1:\n    fast()', (2, 0)),
        ('MINOR = int(torch.__version__.split(".")[1])\nif MINOR >= 1:\n    fast()', None),
        ('v = tuple(int(x) for x in torch.__version__.split(".")[:2])\nif v <= (1, 12):\n    slow()', (1, 13)),
        ('if hasattr(torch.nn.functional, "scaled_dot_product_attention"):\n    fast()', (2, 0)),
        ("try:\n    from torch.amp import GradScaler\nexcept ImportError:\n    from torch.cuda.amp import GradScaler", (2, 3)),
        ('assert torch.__version__ >= "2.0"', None),
        ('if torch.__version__ < "2.0":\n    raise RuntimeError("too old")', None),
        ('if other.__version__ >= "2.0":\n    fast()', None),
        ('if hasattr(torch, "something"):\n    fast()', None),
        ("try:\n    from torch.amp import GradScaler\nexcept ImportError:\n    raise", None),
    ],
)
def test_branches_for_an_older_torch(code: str, before: tuple[int, int] | None) -> None:
    module = parse(Source.from_bytes("/p/a.py", f"import torch\n{code}\n".encode(), Kind.PYTHON), "a").module
    assert [one.before for one in older_torch(module)] == ([before] if before else [])
