"""The fix of accumulation-without-no-sync: when it is offered, at which level, and how the lines read."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness import lint

from ldlm_lint.autofix.edits import apply_edits
from ldlm_lint.model import Applicability, Finding

PROGRAM = """import torch
from torch.nn.parallel import DistributedDataParallel as DDP


def main(model, loader, rank, accumulate, distributed):
    model = model.cuda(rank)
    {wrap}
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    step = 0
    for batch in loader:
        {body}
        if {test}:
            optimizer.step()
            optimizer.zero_grad()
"""
WRAP = "model = DDP(model, gradient_as_bucket_view=True)"
BODY = "loss = model(batch).mean()\n        loss.backward()\n        step += 1"


def finding_of(root: Path, **parts: str) -> Finding:
    """The one finding of the rule on the program with these parts."""
    parts = {"wrap": WRAP, "body": BODY, "test": "(step + 1) % accumulate == 0"} | parts
    (root / "pyproject.toml").write_text("[tool.ldlm-lint]\n")
    (root / "train.py").write_text(PROGRAM.format(**parts))
    findings = lint(root).findings
    return next(one for one in findings if one.rule == "accumulation-without-no-sync")


def test_a_wrap_under_a_condition_is_only_shown(tmp_path):
    body = "loss = model(batch).mean()\n        loss.backward()"
    fix = finding_of(tmp_path, wrap=f"if distributed:\n        {WRAP}", body=body).fix
    assert fix is not None
    assert fix.applicability is Applicability.DISPLAY
    fix = finding_of(tmp_path, body=body).fix
    assert fix is not None
    assert fix.applicability is Applicability.UNSAFE


@pytest.mark.parametrize(
    "parts",
    [
        # The counter grows between the forward pass and the test, which would read it too early.
        {},
        # Indenting would change the text of the string.
        {"body": 'loss = model(batch).mean()\n        print("""\nnow\n""")\n        loss.backward()'},
        # The forward pass stands in another function.
        {"body": "loss = forward(model, batch)\n        loss.backward()"},
        # Nobody knows what asking twice does.
        {"body": "loss = model(batch).mean()\n        loss.backward()", "test": "next(counter) % accumulate == 0"},
        # A nested block holds the backward pass.
        {"body": "loss = model(batch).mean()\n        if loss < 9:\n            loss.backward()"},
    ],
    ids=["counter", "string", "function", "call", "nested"],
)
def test_no_fix_where_a_line_in_front_would_not_do(parts, tmp_path):
    assert finding_of(tmp_path, **parts).fix is None


def test_the_block_keeps_tabs_blank_lines_and_comments(tmp_path):
    body = "loss = model(\n\n            batch  # all of it\n        ).mean()\n        # then back\n        loss.backward()"
    (tmp_path / "pyproject.toml").write_text("[tool.ldlm-lint]\n")
    text = PROGRAM.format(wrap=WRAP, body=body, test="(step + 1) % accumulate == 0").replace("    ", "\t")
    (tmp_path / "train.py").write_text(text)
    fix = next(one for one in lint(tmp_path).findings if one.rule == "accumulation-without-no-sync").fix
    assert fix is not None
    fixed = apply_edits(text.encode(), fix.edits).decode()
    assert (
        "\t\twith nullcontext() if (step + 1) % accumulate == 0 else model.no_sync():\n"
        "\t\t\tloss = model(\n\n\t\t\t\tbatch  # all of it\n\t\t\t).mean()\n\t\t\t# then back\n\t\t\tloss.backward()\n"
        "\t\tif (step + 1)"
    ) in fixed
    compile(fixed, "train.py", "exec")
