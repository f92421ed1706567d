"""A loader that only one caller asks for is gone through as often as that caller does."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness import lint

RULE = "dataloader-without-persistent-workers"
MAKES = """
from torch.utils.data import DataLoader


def batches(data, once=False):
    if once:
        return DataLoader(data, num_workers=4)
    return DataLoader(data, num_workers=4, persistent_workers=True, shuffle=True)
"""
LOOKS = """
from makes import batches


def mean(data):
    return sum(one.mean() for one in batches(data, once=True))
"""
TRAINS = """
import torch
from makes import batches


def train(net, data, epochs=20):
    loader = batches(data{asked})
    optimizer = torch.optim.AdamW(net.cuda().parameters(), fused=True)
    for _ in range(epochs):
        for one in loader:
            loss = net(one.cuda()).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
"""


@pytest.mark.parametrize(("asked", "lines"), [("", []), (", once=False", []), (", once=True", [7])])
def test_the_arm_that_training_asks_for_is_the_one_that_comes_again(tmp_path: Path, asked: str, lines: list[int]):
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'small'\nversion = '1'\n")
    for name, text in (("makes", MAKES), ("looks", LOOKS), ("train", TRAINS.format(asked=asked))):
        (tmp_path / f"{name}.py").write_text(text)
    report = lint(tmp_path)
    found = [report.sources[one.span.path].position(one.span.start)[0] for one in report.findings if one.rule == RULE]
    assert found == lines
