"""What is shown in place of a bounded loss, and of the mean squared error of unit vectors; never applied."""

from __future__ import annotations

from pathlib import Path

import pytest
from collected import for_every
from harness import lint

from ldlm_lint.files.edited import apply_edits
from ldlm_lint.model import Applicability

PROGRAM = """import torch
import torch.nn.functional as F


def train(model, loader, optimizer, limit, weight):
    for x, y in loader:
        loss = F.l1_loss(model(x), y)
        {line}
        loss.backward()
        optimizer.step()
"""


def shown(root: Path, line: str) -> str:
    """The line as the finding would have it; empty where its fix has no edits."""
    (root / "pyproject.toml").write_text('[tool.ldlm-lint]\nselect = ["clamped-loss", "mse-on-unit-vectors"]\n')
    text = PROGRAM.format(line=line)
    (root / "train.py").write_text(text)
    (fix,) = (one.fix for one in lint(root).findings)
    assert fix is not None
    assert fix.applicability is Applicability.DISPLAY and fix.reason
    after = apply_edits(text.encode(), fix.edits).decode()
    compile(after, "train.py", "exec")
    return after.partition("y)\n")[2].partition("        loss.backward()")[0].strip() if fix.edits else "nothing"


@for_every(
    ("line", "wanted"),
    [
        ("loss = torch.clamp(loss, min=0.0, max=limit)", "loss = torch.clamp(loss, min=0.0)"),
        ("loss = torch.clamp(loss, 0.0, 10.0)", "loss = torch.clamp(loss, 0.0)"),
        ("loss = weight * loss.clamp(max=10)", "loss = weight * loss"),
        ("loss = weight * min(loss, 10.0)", "loss = weight * loss"),
        ("loss = weight * (loss * 2).clamp(None, 10)", "loss = weight * (loss * 2)"),
        # The whole line goes where nothing but ``loss = loss`` would be left of it.
        ("loss = loss.clamp(max=10)", ""),
        ("loss.clamp_(0, 1)", "nothing"),
    ],
)
def test_a_loss_without_its_bound(line, wanted, tmp_path):
    assert shown(tmp_path, line) == wanted


@pytest.mark.parametrize(
    ("dim", "loss", "wanted"),
    [
        ("-1", "weight * F.mse_loss(u, v)", "weight * F.mse_loss(u, v) * (u.shape[-1] / 2)"),
        # Which dimension holds the width the call does not tell, or something else happens to the error first.
        ("1", "weight * F.mse_loss(u, v)", None),
        ("-1", "F.mse_loss(u, v, reduction='none').mean()", None),
        ("-1", "weight / F.mse_loss(u, v)", None),
    ],
)
def test_an_error_of_unit_vectors_times_their_width(dim, loss, wanted, tmp_path):
    head = f"u = F.normalize(x, dim={dim})\n        v = F.normalize(y, dim={dim})\n        loss = "
    assert shown(tmp_path, head + loss) == (head + wanted if wanted else "nothing")
