"""A loss is detached safely only where nothing that the file does with its sum can tell."""

from __future__ import annotations

from pathlib import Path

import pytest
from collected import for_every

from ldlm_lint import engine
from ldlm_lint.config import Config
from ldlm_lint.model import Applicability

TRAINING = """{imports}


def train(model, loader, optimizer, writer):
    total = 0
    losses = []
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
        {collect}
    {use}
"""
TORCH = "import torch\nimport torch.nn.functional as F"
SAFE, UNSAFE = Applicability.SAFE, Applicability.UNSAFE


def levels(root: Path, collect: str, use: str, imports: str = TORCH) -> list[Applicability]:
    """The applicability of each fix that a training gets."""
    (root / "pyproject.toml").write_text("[tool.ldlm-lint]\n")
    (root / "train.py").write_text(TRAINING.format(collect=collect, use=use, imports=imports))
    report = engine.run([root], Config.load(root), base=root)
    found = [finding for finding in report.findings if finding.rule == "loss-graph-accumulation"]
    return [finding.fix.applicability for finding in found if finding.fix]


@for_every(
    "use, expected",
    [
        ('print(f"{total / len(loader):.4f}")', SAFE),
        # What a template of another form asks for is not followed.
        ('print("{:.4f}".format(total))', UNSAFE),
        ('print("%.3f of %d" % (total / 2, 3))', UNSAFE),
        ("print(total.item(), float(total), int(total))", SAFE),
        ("average = total / len(loader)\n    return average.item()", SAFE),
        ("best = 3\n    if total < best:\n        best = total\n    return float(best)", SAFE),
        ("log = SummaryWriter()\n    log.add_scalar('loss', total, 1)", SAFE),
        # The text of a tensor names its graph.
        ('print(f"{total}")', UNSAFE),
        ('print(f"{total!r:>10}")', UNSAFE),
        ('print(f"{total=}")', UNSAFE),
        ('print("{} {:.4f}".format(total, total))', UNSAFE),
        ('print("%s" % total)', UNSAFE),
        ("print(total)", UNSAFE),
        ("print(round(total, 3))", UNSAFE),
        # So do its attributes, and what others are handed.
        ('print(f"{total.requires_grad:d}")', UNSAFE),
        ("writer.add_scalar('loss', total, 1)", UNSAFE),
        ("model.item(total)", UNSAFE),
        ("history = []\n    history.append(total)\n    return history", UNSAFE),
        ("return total", UNSAFE),
        ("yield total", UNSAFE),
        ("model.total = total", UNSAFE),
        ("return lambda: total", UNSAFE),
    ],
)
def test_a_sum_is_detached_safely_where_only_its_value_is_read(
    tmp_path: Path, use: str, expected: Applicability
) -> None:
    imports = f"{TORCH}\nfrom torch.utils.tensorboard import SummaryWriter"
    assert levels(tmp_path, "total += loss", use, imports) == [expected]


@for_every(
    "use, expected",
    [
        ("print(torch.stack(losses).mean().item())", SAFE),
        ('print(f"{sum(losses) / len(losses):.4f}", losses[-1].item())', SAFE),
        ('print(f"{losses}")', UNSAFE),
        ('print("{}".format(losses))', UNSAFE),
        ("print(losses)", UNSAFE),
        ("for one in losses:\n        writer(one)", UNSAFE),
    ],
)
def test_a_list_is_detached_safely_where_only_its_values_are_read(
    tmp_path: Path, use: str, expected: Applicability
) -> None:
    assert levels(tmp_path, "losses.append(loss)", use) == [expected]


@pytest.mark.parametrize(
    "use",
    ["total.backward()", "(total / 3).backward()", "print(torch.autograd.grad(total, model.parameters()))"],
)
def test_a_sum_that_is_differentiated_is_left_alone(tmp_path: Path, use: str) -> None:
    assert levels(tmp_path, "total += loss", use) == []


OWN_GRAPH = "import torch\nfrom own import F\n\n\nclass Value:\n    def backward(self):\n        self.grad = 1"


@pytest.mark.parametrize("imports", ["from own import F", OWN_GRAPH], ids=["without-torch", "with-a-graph-of-its-own"])
def test_what_may_not_be_a_tensor_is_not_detached_safely(tmp_path: Path, imports: str) -> None:
    assert levels(tmp_path, "total += loss", "print(float(total))", imports) == [UNSAFE]
