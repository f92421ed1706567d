"""The harness that runs programs on several ranks: what would hang once in some hundred runs fails in each."""

from __future__ import annotations

from pathlib import Path

import pytest
import warm

pytestmark = pytest.mark.torch

PROGRAM = """
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
model = DistributedDataParallel(torch.nn.Linear(4, 1))
model(torch.ones(2, 4)).mean().backward()
{end}
dist.destroy_process_group()
"""


@pytest.mark.parametrize(("end", "code"), [("del model", 0), ("", 1)])
def test_a_model_under_ddp_goes_before_its_process_group(tmp_path: Path, end: str, code: int) -> None:
    (tmp_path / "train.py").write_text(PROGRAM.format(end=end))
    found, _, err = warm.run(["train.py"], tmp_path, {}, 60, ranks=2)
    assert (found, "outlive their process group" in err) == (code, bool(code))
