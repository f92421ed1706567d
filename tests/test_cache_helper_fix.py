"""The fix that takes a call of the project's own ``empty_cache()`` away says that it may take more away."""

from __future__ import annotations

from pathlib import Path

import pytest

from ldlm_lint.config import Config
from ldlm_lint.engine import run
from ldlm_lint.model import Applicability

HELPER = "import torch\n\n\ndef empty_cache():\n    torch.cuda.empty_cache()\n"
TRAINING = """\
import torch
from {module} import empty_cache


def train(model, loader, optimizer):
    for batch in loader:
        model(batch.cuda(non_blocking=True)).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        empty_cache()
"""


@pytest.mark.parametrize(("module", "more"), [("memory", True), ("torch.cuda", False)])
def test_the_reason_names_what_a_helper_may_do(tmp_path: Path, module: str, more: bool) -> None:
    (tmp_path / "memory.py").write_text(HELPER)
    (tmp_path / "train.py").write_text(TRAINING.format(module=module))
    found = [one for one in run([tmp_path], Config(), base=tmp_path).findings if one.rule == "cache-emptied-in-training-loop"]
    assert [one.fix.applicability for one in found] == [Applicability.UNSAFE]
    assert ("can do more" in found[0].fix.reason) is more
