"""The fixes of optimizers: at which level, on which torch, and how the lines read."""

from __future__ import annotations

from pathlib import Path

import pytest
from collected import for_every
from harness import lint

from ldlm_lint.files.edited import apply_edits
from ldlm_lint.model import Applicability, Fix

PROGRAM = """{head}

def main(model, loader, accelerator):
    {before}
    optimizer = {optimizer}
    {behind}
    for batch in loader:
        optimizer.zero_grad()
        model(batch.cuda()).mean().backward()
        optimizer.step()
"""
PARTS = {
    "head": "import torch\n",
    "before": "model = model.cuda()",
    "optimizer": "torch.optim.AdamW(model.parameters())",
    "behind": "pass",
}


def fix_of(root: Path, parts: dict[str, str], target: str = "") -> tuple[Fix | None, str]:
    """The fix of optimizer-not-fused on a program, and the program after it."""
    (root / "pyproject.toml").write_text(f"[tool.ldlm-lint]\n{target}\n")
    text = PROGRAM.format(**PARTS | parts)
    (root / "train.py").write_text(text)
    fix = next(one for one in lint(root).findings if one.rule == "optimizer-not-fused").fix
    return fix, apply_edits(text.encode(), fix.edits).decode() if fix is not None else text


def test_a_file_without_torch_gets_what_it_needs(tmp_path):
    parts = {"head": "from torch import optim\n", "optimizer": "optim.AdamW(model.parameters())"}
    fix, after = fix_of(tmp_path, parts)
    assert fix is not None and fix.applicability is Applicability.UNSAFE
    assert after.startswith("import torch\nfrom torch import optim\n")
    assert "optim.AdamW(model.parameters(), fused=torch.cuda.is_available())" in after
    compile(after, "train.py", "exec")


@for_every(
    ("parts", "target", "level"),
    [
        ({}, "", Applicability.UNSAFE),
        # SGD takes the argument since torch 2.3 only: TypeError before.
        ({"optimizer": "torch.optim.SGD(model.parameters(), lr=0.1)"}, "", Applicability.DISPLAY),
        ({"optimizer": "torch.optim.SGD(model.parameters(), lr=0.1)"}, 'target-torch = "2.4"', Applicability.UNSAFE),
        # Up to torch 2.3 the constructor refuses parameters on a CPU.
        ({"before": "pass", "behind": "model.cuda()"}, "", Applicability.DISPLAY),
        ({"before": "pass", "behind": "model.cuda()"}, 'target-torch = "2.4"', Applicability.UNSAFE),
        ({"before": "model.to('cuda')", "behind": "model.cuda()"}, "", Applicability.UNSAFE),
    ],
    ids=["adamw", "sgd", "sgd-2.4", "moved-later", "moved-later-2.4", "moved-before"],
)
def test_what_may_raise_on_an_older_torch_is_only_shown(parts, target, level, tmp_path):
    fix, _ = fix_of(tmp_path, parts, target)
    assert fix is not None
    assert fix.applicability is level
    assert fix.reason


@pytest.mark.parametrize("made", ["torch.nn.Embedding(9, 9, sparse=True)", "torch.zeros(3, dtype=torch.complex64)"])
def test_no_fix_where_the_file_makes_what_fused_kernels_refuse(made, tmp_path):
    fix, _ = fix_of(tmp_path, {"before": f"model.extra = {made}"})
    assert fix is None


def test_the_flag_is_set_in_the_state_before_it_is_loaded(tmp_path):
    (tmp_path / "pyproject.toml").write_text('[tool.ldlm-lint]\nselect = ["fused-lost-on-resume"]\n')
    text = PROGRAM.format(
        **PARTS
        | {
            "optimizer": "torch.optim.AdamW(model.parameters(), fused=True)",
            "behind": 'checkpoint = torch.load("last.pt")\n    optimizer.load_state_dict(checkpoint["optimizer"])',
        }
    )
    (tmp_path / "train.py").write_text(text)
    (fix,) = (one.fix for one in lint(tmp_path).findings)
    assert fix is not None
    assert fix.applicability is Applicability.DISPLAY
    assert (
        '    for group in checkpoint["optimizer"]["param_groups"]:\n        group["fused"] = True\n'
        '    optimizer.load_state_dict(checkpoint["optimizer"])\n'
    ) in apply_edits(text.encode(), fix.edits).decode()


SCALED = """import torch


def main(model, loader):
    model = model.cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    scaler = torch.amp.GradScaler("cuda")
    for batch in loader:
        optimizer.zero_grad()
        scaler.scale(model(batch.cuda()).mean()).backward()
        {before}
        scaler.step(optimizer)
        scaler.update()
        {behind}
"""


@for_every(
    "before, behind, level",
    [
        pytest.param("pass", "norms = [one.grad.norm() for one in model.parameters()]", Applicability.DISPLAY, id="norms"),
        pytest.param("pass", "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)", Applicability.DISPLAY, id="clipping"),
        pytest.param("scaler.unscale_(optimizer)", "norms = [one.grad.norm() for one in model.parameters()]", Applicability.UNSAFE, id="unscaled"),
        pytest.param("pass", "optimizer.zero_grad(); model.weight.grad.norm()", Applicability.UNSAFE, id="reset-first"),
        pytest.param("pass", "missing = [one for one in model.parameters() if one.grad is None]", Applicability.UNSAFE, id="only-asked-for"),
        pytest.param("pass", "print(torch.autograd.grad(model(1), model.weight))", Applicability.UNSAFE, id="another-grad"),
    ],
)
def test_gradients_that_would_stay_scaled_keep_the_fix_from_being_applied(before, behind, level, tmp_path):
    (tmp_path / "pyproject.toml").write_text("[tool.ldlm-lint]\n")
    (tmp_path / "train.py").write_text(SCALED.format(before=before, behind=behind))
    fix = next(one for one in lint(tmp_path).findings if one.rule == "optimizer-not-fused").fix
    assert fix.applicability is level
    assert ("call scaler.unscale_(optimizer)" in fix.reason) == (level is Applicability.DISPLAY)
