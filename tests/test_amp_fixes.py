"""Rewriting torch.cuda.amp is safe only where nothing else can tell the old classes from the new."""

from __future__ import annotations

from pathlib import Path

import pytest

from ldlm_lint import engine
from ldlm_lint.config import Config
from ldlm_lint.model import Applicability

TRAINING = "import torch\n\n\ndef main(model, fit):\n    scaler = torch.cuda.amp.GradScaler()\n    {use}\n"


def level(root: Path, code: str, target: str) -> Applicability | None:
    """The applicability of the only fix that a training gets."""
    (root / "pyproject.toml").write_text(f'[tool.ldlm-lint]\ntarget-torch = "{target}"\n')
    (root / "train.py").write_text(code)
    report = engine.run([root], Config.load(root), base=root)
    (found,) = [finding for finding in report.findings if finding.rule == "deprecated-amp-api"]
    return found.fix.applicability if found.fix else None


@pytest.mark.parametrize(
    "use, target, expected",
    [
        pytest.param("scaler.update()", "2.4", Applicability.SAFE, id="kept"),
        pytest.param("scaler.update()", "2.3", Applicability.UNSAFE, id="an-older-torch"),
        pytest.param("fit(model, scaler)", "2.4", Applicability.UNSAFE, id="handed-on"),
        pytest.param("model.scaler = scaler", "2.4", Applicability.UNSAFE, id="stored"),
        pytest.param("return scaler", "2.4", Applicability.UNSAFE, id="returned"),
    ],
)
def test_a_scaler_is_rewritten_safely_where_it_stays(tmp_path: Path, use: str, target: str, expected: Applicability) -> None:
    assert level(tmp_path, TRAINING.format(use=use), target) is expected
