"""The fix of accumulation-without-no-sync: when it is offered, and how the lines read."""

from __future__ import annotations

import re
from pathlib import Path

from collected import for_every
from harness import lint

from ldlm_lint.files.edited import apply_edits
from ldlm_lint.model import Applicability, Finding

PROGRAM = """import torch
from torch.nn.parallel import DistributedDataParallel as DDP


def forward(model, batch):
    return model(batch).mean()


def main(model, critic, teacher, loader, scaler, rank, accumulate, distributed):
    model = model.cuda(rank)
    {wrap}
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    step = 0
    for i, batch in enumerate(loader):
        {body}
        if {test}:
            {guarded}
            optimizer.zero_grad()
{behind}"""
WRAP = "model = DDP(model, gradient_as_bucket_view=True)"
TEST = "(i + 1) % accumulate == 0"
BODY = "loss = model(batch).mean()\n        loss.backward()"
PARTS = {"wrap": WRAP, "body": BODY, "test": TEST, "guarded": "optimizer.step()", "behind": ""}
SYNC = "with nullcontext() if (i + 1) % accumulate == 0 else model.no_sync():\n"


def finding_of(root: Path, text: str) -> Finding:
    """The one finding of the rule on a program."""
    (root / "pyproject.toml").write_text("[tool.ldlm-lint]\n")
    (root / "train.py").write_text(text)
    return next(one for one in lint(root).findings if one.rule == "accumulation-without-no-sync")


def fixed(root: Path, text: str) -> str:
    """The program after the fix, which there must be, and which Python must take."""
    fix = finding_of(root, text).fix
    assert fix is not None
    assert fix.applicability is Applicability.UNSAFE
    after = apply_edits(text.encode(), fix.edits).decode()
    compile(after, "train.py", "exec")
    return after


@for_every(
    ("parts", "expected"),
    [
        ({}, f"{SYNC}            loss = model(batch).mean()\n            loss.backward()\n        if"),
        # The last group of an epoch may be incomplete: its step is taken on synchronised gradients, too.
        (
            {"test": f"{TEST} or i + 1 == len(loader)"},
            "with nullcontext() if (i + 1) % accumulate == 0 or i + 1 == len(loader) else model.no_sync():\n",
        ),
        (
            {"wrap": f"if distributed:\n        {WRAP}"},
            'with nullcontext() if (i + 1) % accumulate == 0 or not hasattr(model, "no_sync") else model.no_sync():\n',
        ),
        (
            {
                "wrap": f"if distributed:\n        {WRAP}",
                "test": "(i + 1) % accumulate != 0:\n            continue\n        if True",
            },
            'with model.no_sync() if hasattr(model, "no_sync") and (i + 1) % accumulate != 0 else nullcontext():\n',
        ),
        # A teacher needs no gradients, and stays where it is.
        (
            {"body": f"with torch.no_grad():\n            teacher(batch)\n        {BODY}"},
            f"teacher(batch)\n        {SYNC}            loss = model",
        ),
        (
            {"body": f"{BODY.replace('d()', 'd(retain_graph=True)')}\n        loss.square().backward()"},
            "            loss.backward(retain_graph=True)\n            loss.square().backward()\n        if",
        ),
    ],
    ids=[
        *("plain", "last-batch", "conditional-wrap", "early-continue", "teacher", "two-passes"),
    ],
)
def test_the_micro_batches_before_the_last_stay_local(parts, expected, tmp_path):
    text = fixed(tmp_path, PROGRAM.format(**PARTS | parts))
    # A context that is too long for a line has one for each of its parts.
    assert expected in re.sub(r"with \(\n +(.+)\n +(if .+)\n +(else .+)\n +\):", r"with \1 \2 \3:", text)


@for_every(
    "parts",
    [
        # What is left at the end of the loop is stepped on, and would be local.
        {"behind": "    if (i + 1) % accumulate != 0:\n        optimizer.step()\n"},
        {"behind": "    optimizer.step()\n"},
        # A step of another test, or of a part of it.
        {"guarded": "optimizer.step()\n        if step % (2 * accumulate) == 0:\n            optimizer.step()"},
        {"body": f"{BODY}\n        if batch is not None:\n            step += 1", "test": "step % accumulate == 0"},
        # The backward pass that is synchronised may never run, and the step comes all the same.
        {"body": "loss = model(batch).mean()\n        if loss < 9:\n            loss.backward()"},
        {"body": BODY.replace("loss =", "try:\n            loss =").replace("\n        loss", "\n            loss")
         + "\n        except RuntimeError:\n            pass"},
        # Clipping in every micro-batch would cut what each rank has alone.
        {"body": f"{BODY}\n        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)"},
        # A counter is not yet increased in front of the forward pass.
        {"body": f"{BODY}\n        step += 1", "test": "step % accumulate == 0"},
        # Two models in one backward pass.
        {"wrap": f"{WRAP}\n    critic = DDP(critic)", "body": BODY.replace("model(batch)", "critic(model(batch))")},
        # A step that is skipped may be that of the last micro-batch.
        {"body": BODY.replace("loss.b", "if loss.isnan():\n            continue\n        loss.b")},
        # Two optimizers take turns.
        {"wrap": f"{WRAP}\n    other_optimizer = torch.optim.SGD(critic.parameters(), lr=1.0)",
         "guarded": "optimizer.step()\n            other_optimizer.step()"},
        # Indenting would change the text of the string.
        {"body": 'loss = model(batch).mean()\n        print("""\nnow\n""")\n        loss.backward()'},
        # Nobody knows what asking twice does.
        {"test": "next(counter) % accumulate == 0"},
    ],
    ids=[
        *("flush", "step-behind", "two-tests", "counter", "nested", "try", "clipping", "increased", "two-models", "skipped", "optimizers"),
        *("string", "call"),
    ],
)  # fmt: skip
def test_no_fix_where_a_line_in_front_would_not_do(parts, tmp_path):
    assert finding_of(tmp_path, PROGRAM.format(**PARTS | parts)).fix is None


def test_the_block_keeps_tabs_blank_lines_and_comments(tmp_path):
    body = "loss = model(\n\n            batch  # all of it\n        ).mean()\n        # then back\n        loss.backward()  # here"
    text = PROGRAM.format(**PARTS | {"body": body}).replace("    ", "\t")
    assert (
        "\t\twith nullcontext() if (i + 1) % accumulate == 0 else model.no_sync():\n"
        "\t\t\tloss = model(\n\n\t\t\t\tbatch  # all of it\n\t\t\t).mean()\n\t\t\t# then back\n\t\t\tloss.backward()  # here\n"
        "\t\tif (i + 1)"
    ) in fixed(tmp_path, text)


def test_the_block_is_indented_as_the_file_is(tmp_path):
    text = PROGRAM.format(**PARTS).replace("    ", "  ")
    wanted = f"    {SYNC}      loss = model(batch).mean()\n      loss.backward()\n    if (i + 1)"
    assert wanted in fixed(tmp_path, text)
