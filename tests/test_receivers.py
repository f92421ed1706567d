"""A method is one of torch's by what it is called on, not by its name."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness import lint

METERS = """
class Meter:
    def __init__(self, optimizer=None):
        self.sums = {{}}
        self.optimizer = optimizer

    def zero_grad(self, set_to_none=True):
        {body}
"""
TRAIN = """
import torch
from torch.nn.parallel import DistributedDataParallel

from meters import Meter


def clear(weights):
    for weight in weights:
        {kept} = weight.{what}
        {kept}.detach_()


def train(net, loader):
    net = DistributedDataParallel(net.cuda())
    optimizer = torch.optim.AdamW(net.parameters(), fused=True)
    meter = Meter(optimizer)
    for batch in loader:
        {clear}
        meter.zero_grad(set_to_none=False)
        loss = net(batch.cuda(non_blocking=True)).square().mean()
        loss.backward()
        optimizer.step()
"""


def rules(tmp_path: Path, body: str, what: str, clear: str) -> set[str]:
    """The rules that report something."""
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'small'\nversion = '1'\n")
    (tmp_path / "meters.py").write_text(METERS.format(body=body))
    (tmp_path / "train.py").write_text(TRAIN.format(kept="held", what=what, clear=clear))
    return {one.rule for one in lint(tmp_path).findings}


@pytest.mark.parametrize(
    ("body", "is_reported"), [("self.sums = {} if set_to_none else dict.fromkeys(self.sums, 0.0)", False), ("self.optimizer.zero_grad(set_to_none)", True)]
)
def test_what_holds_no_gradients_keeps_none_as_zeros(tmp_path, body, is_reported):
    assert ("gradients-kept-as-zeros" in rules(tmp_path, body, "data", "")) == is_reported


@pytest.mark.parametrize(("what", "is_reported"), [("grad", False), ("cache", True)])
def test_gradients_are_detached_under_any_name(tmp_path, what, is_reported):
    assert ("ddp-gradient-copy" in rules(tmp_path, "pass", what, "clear(list(net.parameters()))")) == is_reported
