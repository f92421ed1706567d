"""Waits that none is: what runs in no usual step, stays on the host, or asks the device for nothing; each beside a twin that waits."""

from __future__ import annotations

from pathlib import Path

import pytest
from collected import for_every
from harness import lint

RULE = "host-sync-in-training-loop"
PROGRAM = """
import torch
from torch import nn

{before}


def main(loader, opt, debug=0, verbose=0):
    net = nn.Linear(8, 8).cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, fused=True)
{begin}    for x, y in loader:
        x, y = x.cuda(), y.cuda()
        loss = (net(x) - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
{inside}
"""
SHOW = "def show(value):\n    print(value.item())\n"
DETAILS = [
    ("if opt.debug > 0:\n    show(loss)", "if opt.width > 0:\n    show(loss)"),
    ("if verbose >= 1:\n    show(loss)", "if verbose < 1:\n    show(loss)"),
    ("if opt.verbose:\n    show(loss)", "if not opt.verbose:\n    show(loss)"),
    ("if not opt.debug:\n    continue\nshow(loss)", "if opt.debug:\n    continue\nshow(loss)"),
    ("if debug > 0:\n    print(loss.item())", "if debug == 0:\n    print(loss.item())"),
    ("if opt.debug > 0 and x.shape[0] > 1:\n    show(loss)", "if opt.debug > 0 or x.shape[0] > 1:\n    show(loss)"),
]
HOMES = [
    ("parts = sum(torch.split(x, 2, dim=1))\nrows = list(x)", "parts = float(sum(torch.split(x, 2, dim=1)).sum())"),
    ("least = torch.as_tensor(0.5).to(x.dtype)\nif least < 1e-5:\n    x = x + 1", "least = torch.as_tensor(0.5).to(x.device)\nif least < 1e-5:\n    x = x + 1"),
]


def found(tmp_path: Path, inside: str, before: str = "", begin: str = "") -> list[str]:
    """The lines that are reported, as they are written."""
    lines = "".join(f"        {line}\n" for line in inside.splitlines())
    text = PROGRAM.format(before=before, begin="".join(f"    {line}\n" for line in begin.splitlines()), inside=lines)
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'small'\nversion = '1'\n")
    (tmp_path / "train.py").write_text(text)
    report = lint(tmp_path)
    return [report.sources[one.span.path].slice(one.span) for one in report.findings if one.rule == RULE]
VERSIONS = [
    ("if parse(torch.__version__) < parse('1.8'):\n    print(loss.item())", "if parse(torch.__version__) >= parse('1.8'):\n    print(loss.item())"),
    ("if digit(TORCH_VERSION) >= digit('1.8'):\n    pass\nelse:\n    x = x.cpu()", "if digit(TORCH_VERSION) >= digit('2.8'):\n    pass\nelse:\n    x = x.cpu()"),
]


@pytest.mark.parametrize(("silent", "waits"), VERSIONS)
def test_what_a_torch_of_the_past_would_run_is_run_no_more(tmp_path, silent, waits):
    imports = "from packaging.version import parse\nfrom mmcv.utils import TORCH_VERSION, digit_version as digit\n"
    assert found(tmp_path, silent, imports) == []
    assert len(found(tmp_path, waits, imports)) == 1


@for_every(("silent", "waits"), DETAILS)
def test_what_a_user_asks_for_to_look_closer_is_no_part_of_a_step(tmp_path, silent, waits):
    assert found(tmp_path, silent, SHOW) == []
    assert len(found(tmp_path, waits, SHOW)) == 1


@pytest.mark.parametrize(("silent", "waits"), HOMES)
def test_what_stays_where_it_is_waits_for_nothing(tmp_path, silent, waits):
    assert found(tmp_path, silent) == []
    assert len(found(tmp_path, waits)) == 1


TRAINER = """
import torch


class Trainer:
    def __init__(self, opt, net):
        self.opt = opt
        self.net = net.cuda()
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.1, fused=True)

    def backward(self):
        self.loss = self.net(self.batch).mean()
        self.loss.backward()

    def train(self, loader):
        epoch = 0
        while epoch < self.opt.epochs:
            for batch in loader:
                self.batch = batch.cuda()
                self.optimizer.zero_grad()
                self.backward()
                self.optimizer.step()
                {inside}
            epoch += 1
"""


@pytest.mark.parametrize(("inside", "count"), [("pass", 0), ("print(self.loss.item())", 1)])
def test_an_object_with_a_method_called_backward_is_no_loss(tmp_path, inside, count):
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'small'\nversion = '1'\n")
    (tmp_path / "train.py").write_text(TRAINER.format(inside=inside))
    report = lint(tmp_path)
    assert len([one for one in report.findings if one.rule == RULE]) == count


ONCE = [
    ("if not shown:\n    print(loss.item())\n    shown = True", "if not shown:\n    print(loss.item())\n    shown = False", "shown = False"),
    ("if pending:\n    print(loss.item())\n    pending = False", "if pending:\n    print(loss.item())\n    pending = False\npending = True", "pending = True"),
]


@pytest.mark.parametrize(("silent", "waits", "begin"), ONCE)
def test_a_branch_that_turns_its_own_flag_runs_once(tmp_path, silent, waits, begin):
    assert found(tmp_path, silent, "", begin) == []
    assert len(found(tmp_path, waits, "", begin)) == 1


ADJACENT = "def layers(x, adjs):\n    for edges, _, size in adjs:\n        x = x[:size[1]] * edges\n    return x\n"
ZIPPED = "def layers(x, adjs):\n    for part, size in zip(x, adjs):\n        x = x + part[:size].sum()\n    return x\n"


def test_numbers_of_a_batch_are_no_tensors(tmp_path):
    assert found(tmp_path, "rows = [y for _ in range(x.num_graphs)]") == []
    assert len(found(tmp_path, "rows = [y for _ in range(x.argmax())]")) == 1


def test_sizes_in_records_that_were_moved_as_a_whole_stay_numbers(tmp_path):
    assert found(tmp_path, "layers(x, [one.to('cuda') for one in opt.records])", ADJACENT) == []
    assert len(found(tmp_path, "layers(x, y)", ZIPPED)) == 1


def test_a_schedule_at_an_interval_makes_no_step_of_it(tmp_path):
    silent = "if x.shape[0] % 100 == 0:\n    print(loss.item())\n    opt.schedule.step()"
    assert found(tmp_path, silent) == []
    assert len(found(tmp_path, silent.replace("if x.shape[0] % 100 == 0:", "if x.shape[0]:"))) == 1
