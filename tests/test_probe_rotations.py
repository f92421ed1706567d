"""Programs of libraries that rotate checkpoints, or would: what the watcher learns of it from live objects."""

from __future__ import annotations

from pathlib import Path

import pytest
import warm

from ldlm_lint.evidence import files
from ldlm_lint.evidence.model import Evidence
from ldlm_lint.evidence.verdicts import judge

pytestmark = pytest.mark.torch

WATCHED = Path(__file__).parent / "probed" / "watched.py"

TRAINER = """
import torch
from transformers import Trainer, TrainingArguments

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def forward(self, x, labels=None):
        y = self.layer(x)
        return {"loss": (y - labels).square().mean(), "logits": y}

rows = [{"x": torch.randn(4), "labels": torch.randn(1)} for _ in range(8)]
arguments = TrainingArguments(
    "out", max_steps=STEPS, save_steps=EVERY, save_total_limit=LIMIT, per_device_train_batch_size=4, report_to=[],
    use_cpu=True, disable_tqdm=True, save_only_model=False,
)
Trainer(Net(), arguments, train_dataset=rows).train()
"""
LIGHTNING = """
import torch
import lightning.pytorch as pl
from lightning.pytorch.callbacks import ModelCheckpoint

class Net(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def training_step(self, batch, index):
        loss = self.layer(batch[0]).square().mean()
        self.log("loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

rows = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(64, 4)), batch_size=4)
keep = ModelCheckpoint("out", save_top_k=LIMIT, monitor="loss", every_n_train_steps=EVERY)
pl.Trainer(
    max_steps=STEPS, callbacks=[keep], logger=False, enable_progress_bar=False, enable_model_summary=False, accelerator="cpu"
).fit(Net(), rows)
"""
ACCELERATE = """
import torch
from accelerate import Accelerator
from accelerate.utils import ProjectConfiguration

accelerator = Accelerator(
    cpu=True, project_config=ProjectConfiguration("out", automatic_checkpoint_naming=True, total_limit=LIMIT)
)
model = torch.nn.Linear(4, 1)
model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1))
for step in range(STEPS):
    accelerator.backward(model(torch.randn(4, 4)).square().mean())
    optimizer.step()
    if step % EVERY == 0:
        accelerator.save_state()
"""
BY_HAND = """
import glob, os, shutil
import torch

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(STEPS):
    model(torch.randn(4, 4)).square().mean().backward()
    optimizer.step()
    if step % EVERY == 0:
        folder = f"out/step{step:04d}"
        os.makedirs(folder)
        torch.save(model.state_dict(), f"{folder}/model.pt")
        torch.save(optimizer.state_dict(), f"{folder}/optimizer.pt")
        for old in sorted(glob.glob("out/step*"))[:-LIMIT]:
            shutil.rmtree(old)
"""
BY_NAME = """
import os
import torch

model, saved = torch.nn.Linear(4, 1), []
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
os.makedirs("out")
for step in range(STEPS):
    model(torch.randn(4, 4)).square().mean().backward()
    optimizer.step()
    saved.append(f"out/{step}.pt")
    torch.save(model.state_dict(), saved[-1])
    if len(saved) > LIMIT:
        os.remove(saved.pop(0))
"""
BY_STEP = """
import contextlib, os, pathlib
import torch

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
os.makedirs("out")

def remove(name):
    REMOVE

for step in range(STEPS):
    model(torch.randn(4, 4)).square().mean().backward()
    optimizer.step()
    torch.save(model.state_dict(), f"out/model-{step}.pt")
    OLD
"""
OLD = "remove(f'out/model-{step - LIMIT}.pt')"
EXISTS = BY_STEP.replace("REMOVE", "if os.path.exists(name): os.remove(name)").replace("OLD", OLD)
IS_FILE = BY_STEP.replace("REMOVE", "old = pathlib.Path(name); old.is_file() and old.unlink()").replace("OLD", OLD)
UNLINK = BY_STEP.replace("REMOVE", "pathlib.Path(name).unlink(missing_ok=True)").replace("OLD", OLD)
TRIED = BY_STEP.replace("REMOVE", "\n    with contextlib.suppress(OSError): os.remove(name)").replace("OLD", OLD)
GUARDED = BY_STEP.replace("REMOVE", "pass").replace("OLD", "if step >= LIMIT: os.remove(f'out/model-{step - LIMIT}.pt')")
# Another file, a name that is free, a file that is written aside.
OTHER = BY_STEP.replace("REMOVE", "pass").replace("OLD", "if os.path.exists('stop'): os.remove('stop')")
FREE = """
import os
import torch

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
os.makedirs("out")
for step in range(STEPS):
    model(torch.randn(4, 4)).square().mean().backward()
    optimizer.step()
    number = 0
    while os.path.exists(f"out/model-{number}.pt"):
        number += 1
    torch.save(model.state_dict(), f"out/model-{number}.part")
    os.replace(f"out/model-{number}.part", f"out/model-{number}.pt")
    if os.path.exists("lock"):
        os.remove("lock")
"""
SHARDED = """
import torch
import torch.distributed.checkpoint as dcp

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(STEPS):
    model(torch.randn(4, 4)).square().mean().backward()
    optimizer.step()
    if step % EVERY == 0:
        dcp.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, checkpoint_id=f"out/{step}")
"""
CASES = {
    "trainer: a limit, no chance": (TRAINER, 12, 10, 2, "inconclusive", "save_total_limit=2 is set, so none had to"),
    "trainer: a limit at work": (TRAINER, 25, 10, 2, "refuted", "3 checkpoints saved, 1 removed"),
    "trainer: none, too few": (TRAINER, 12, 10, None, "inconclusive", "2 checkpoints saved, none removed, too few"),
    "trainer: none": (TRAINER, 14, 2, None, "verified", "7 checkpoints saved, and none was removed"),
    "lightning: best three, no chance": (LIGHTNING, 12, 4, 3, "inconclusive", "save_top_k=3 is set"),
    "lightning: best one, at work": (LIGHTNING, 12, 2, 1, "refuted", "removed"),
    "lightning: all": (LIGHTNING, 12, 2, -1, "verified", "checkpoints saved, and none was removed"),
    "accelerate: a limit, no chance": (ACCELERATE, 12, 2, 6, "inconclusive", "total_limit=6 is set"),
    "accelerate: a limit at work": (ACCELERATE, 12, 2, 3, "refuted", "6 checkpoints saved, 3 removed"),
    "accelerate: none": (ACCELERATE, 12, 2, None, "verified", "6 checkpoints saved, and none was removed"),
    "by hand: no chance": (BY_HAND, 12, 2, 6, "inconclusive", "train.py has code that deletes files"),
    "by hand: many are kept": (BY_HAND, 14, 1, 30, "inconclusive", "the program lists their folder repeatedly"),
    "by name: many are kept": (BY_NAME, 14, 1, 30, "inconclusive", "the program keeps their names"),
    "by name: at work": (BY_NAME, 14, 1, 3, "refuted", "14 checkpoints saved, 11 removed"),
    "by step: fifteen of twenty": (EXISTS, 15, 1, 20, "inconclusive", "asks for other checkpoints of this series"),
    "by step: a path": (IS_FILE, 15, 1, 20, "inconclusive", "asks for other checkpoints of this series"),
    "by step: unlink": (UNLINK, 15, 1, 20, "inconclusive", "asks for other checkpoints of this series"),
    "by step: tried": (TRIED, 15, 1, 20, "inconclusive", "asks for other checkpoints of this series"),
    "by step: behind a condition": (GUARDED, 15, 1, 20, "inconclusive", "train.py has code that deletes checkpoints"),
    "by step: at work": (EXISTS, 15, 1, 5, "refuted", "15 checkpoints saved, 10 removed"),
    "another file is removed": (OTHER, 15, 1, None, "verified", "15 checkpoints saved, and none was removed"),
    "a free name is looked for": (FREE, 15, 1, None, "verified", "15 checkpoints saved, and none was removed"),
    "by hand: at work": (BY_HAND, 12, 2, 3, "refuted", "6 checkpoints saved, 3 removed"),
    "sharded: few": (SHARDED, 9, 3, None, "inconclusive", "3 checkpoints saved, none removed, too few"),
    "sharded: all": (SHARDED, 12, 2, None, "verified", "6 checkpoints saved, and none was removed"),
}  # fmt: skip


def _evidence(folder: Path, text: str) -> Evidence:
    """What is seen of a program that is a project of its own."""
    program, out = folder / "train.py", folder / "seen"
    program.write_text(text)
    code, _, err = warm.run([str(WATCHED), str(out), "40", str(program)], folder, {}, 120)
    assert code == 0, err
    (evidence,) = files.read(out)
    assert not [one for one in evidence.unavailable.values() if "own error" in one], evidence.unavailable
    return evidence


@pytest.mark.parametrize("case", CASES)
def test_checkpoints_that_are_kept(case: str, tmp_path: Path) -> None:
    text, steps, every, limit, verdict, said = CASES[case]
    evidence = _evidence(tmp_path, f"STEPS, EVERY, LIMIT = {steps}, {every}, {limit}\n{text}")
    found = [one for one in judge([evidence]) if one.rule == "unbounded-checkpoints"]
    assert {one.verdict.value for one in found} == {verdict} and said in found[0].reason, found
