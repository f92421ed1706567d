"""The waits of one training step: their order, how often each runs, and those that an earlier one leaves nothing to wait for."""

from __future__ import annotations

import io
import json
from collections import Counter
from pathlib import Path

import jsonschema
import pytest
from collected import for_every
from harness import lint

from ldlm_lint.model import Finding, Report, Severity
from ldlm_lint.report import json as json_format
from ldlm_lint.report import text as text_format
from ldlm_lint.report.view import View
from ldlm_lint.rules import by_symbol

RULE = "host-sync-in-training-loop"
SCHEMA = json.loads((Path(__file__).parents[1] / "docs" / "findings.schema.json").read_text(encoding="utf-8"))
MODEL = """
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = nn.Linear(width, width)

    def forward(self, x):
        y = self.inner(x)
        scale = y.abs().max().item()
        return y / scale


class Tower(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.blocks = nn.ModuleList([Block(width) for _ in range(depth)])

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x
"""
TRAIN = """
import logging

import torch
from torch import nn

from model import Tower

log = logging.getLogger(__name__)


def accuracy(logits, labels):
    right = (logits.argmax(-1) == labels).float().mean()
    return right.item()


def train(loader, width, depth):
    net = Tower(width, depth).cuda()
    optimizer = torch.optim.AdamW(net.parameters(), fused=True)
    for inputs, labels in loader:
        inputs, labels = inputs.cuda(), labels.cuda()
        logits = net(inputs)
        loss = nn.functional.cross_entropy(logits, labels)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        shown = loss.item()
        log.info("loss %.3f", shown)
        size = norm.item()
        log.info("norm %.3f", size)
        log.info("accuracy %.3f", accuracy(logits, labels))
        for one in range(labels.shape[0]):
            log.info("sample %d", labels[one].item())
"""


@pytest.fixture(scope="module")
def report(tmp_path_factory) -> Report:
    root = tmp_path_factory.mktemp("steps")
    (root / "pyproject.toml").write_text("[project]\nname = 'small'\nversion = '1'\n")
    (root / "model.py").write_text(MODEL)
    (root / "train.py").write_text(TRAIN)
    return lint(root)


@pytest.fixture
def waits(report) -> list[Finding]:
    found = [one for one in report.findings if one.rule == RULE]
    return sorted(found, key=lambda one: one.in_step.order)


def texts(report: Report, waits: list[Finding]) -> list[str]:
    return [report.sources[one.span.path].slice(one.span) for one in waits]


def test_they_are_in_the_order_in_which_they_run(report, waits):
    assert texts(report, waits) == ["y.abs().max().item()", "loss.item()", "norm.item()", "right.item()", "labels[one].item()"]
    assert [one.in_step.order for one in waits] == [1, 2, 3, 4, 5]
    assert len({one.in_step.step for one in waits}) == 1


def test_how_often_each_runs_is_told_by_the_loops_on_the_way(waits):
    assert [one.in_step.per for one in waits] == ["layer", "step", "step", "step", "sample"]


def test_a_wait_with_nothing_launched_since_the_one_before_is_information(waits):
    assert [one.severity for one in waits] == [Severity.REFACTOR if by_symbol[RULE].severity is Severity.REFACTOR else Severity.WARNING] * 2 + [
        Severity.INFO, Severity.WARNING, Severity.WARNING
    ]
    after = waits[2]
    assert after.in_step.after == waits[1].span
    assert ", but only for work that line 28 already waits for" in by_symbol[RULE].text(after.args)


def test_json_keeps_each_of_them(report, tmp_path):
    document = json.loads(json_format.render(View(report, Path(report.root), by_symbol)))
    jsonschema.validate(document, SCHEMA)
    steps = [one["step"] for one in document["findings"] if one["rule"] == RULE]
    assert sorted(one["order"] for one in steps) == [1, 2, 3, 4, 5]
    assert [one["after"] for one in steps if one["order"] == 3] == [{"path": "train.py", "line": 28}]
    assert [(one["per"], one["loop"]) for one in steps if one["order"] == 1] == [("layer", {"path": "model.py", "line": 22})]


def test_the_text_shows_them_as_one_block(report):
    stream = io.StringIO()
    text_format.write(View(report, Path(report.root), by_symbol), stream)
    block = stream.getvalue().partition("step: ")[2].splitlines()
    assert block[0] == "train.py:20, 4 waits in the order in which they run"
    assert block[1] == "   1. model.py:12:17  `y.abs().max().item()`, once per layer (model.py:22)"
    assert "`labels[one].item()`, once per sample" in block[4]
    assert "\n  1 host-sync-in-training-loop (W7507), an earlier wait leaves it nothing to wait for: train.py:" in stream.getvalue()


WORK_BETWEEN = {
    "a kernel": "size = norm.mul(2).item()",
    "a step": "optimizer.step()\n        size = norm.item()",
    "a function that computes": "size = accuracy(logits, labels)",
    "an unknown function": "unknown()\n        size = norm.item()",
}
OWN_READS = {
    "a mask": "size = norm[norm > 1].cpu()",
    "a comparison": "size = 0\n        if norm > 1:\n            size = 1",
    "a sum": "size = norm.sum().item()",
}


def _waits_with(tmp_path, second):
    """The findings where the second wait of the step is another one."""
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'small'\nversion = '1'\n")
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "train.py").write_text(TRAIN.replace("size = norm.item()", second).replace("import torch\n", "import torch\nfrom elsewhere import unknown\n", 1))
    found = [one for one in lint(tmp_path).findings if one.rule == RULE]
    assert len(found) >= 4
    return found


@for_every("name", WORK_BETWEEN)
def test_what_was_launched_in_between_is_waited_for(name, tmp_path):
    assert {one.severity for one in _waits_with(tmp_path, WORK_BETWEEN[name])} == {Severity.WARNING}


@for_every("name", OWN_READS)
def test_what_a_wait_reads_itself_is_no_work_between(name, tmp_path):
    severities = Counter(one.severity for one in _waits_with(tmp_path, OWN_READS[name]))
    assert severities[Severity.INFO] >= 1
    assert severities[Severity.WARNING] >= 3
