"""Keeping the last checkpoints is only shown where it would delete the best one, or one that somebody names by its number."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from collected import for_every

from ldlm_lint import engine
from ldlm_lint.config import Config
from ldlm_lint.model import Applicability, Fix

_TRAIN = """import torch


def train(model, optimizer, loader, valid, args, folder):
{before}    for epoch in range(args.epochs):
        for batch in loader:
            loss = model(batch).mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
{inside}        torch.save(model.state_dict(), f"{{folder}}/model-{{epoch:03d}}.pt")
"""
_LAST = "keep the last 3 of these checkpoints"


def program(inside: str = "", before: str = "", more: str = "") -> str:
    """A training that saves in every epoch, with these statements in front of the loop and in it, and this code behind it."""
    indented = "".join(f"        {line}\n" for line in inside.splitlines())
    return _TRAIN.format(before="".join(f"    {line}\n" for line in before.splitlines()), inside=indented) + more


def fix_of(folder: Path, files: Mapping[str, str]) -> Fix | None:
    """The fix for the one place of a project with numbered checkpoints."""
    for name, text in {"pyproject.toml": '[tool.ldlm-lint]\nselect = ["unbounded-checkpoints"]\n', **files}.items():
        (folder / name).write_text(text)
    report = engine.run([folder], Config.load(folder), base=folder)
    assert len(report.findings) == 1, report.findings
    return report.findings[0].fix


_LOST_BEST = [
    "score = valid(model)\nbest_acc = max(best_acc, score)\nprint(best_acc)",
    "score = valid(model)\nif score > best_acc:\n    best_acc = score",
    "score = valid(model)\nif best_acc < score:\n    best_acc = score.item()\n    best_at = epoch",
    "val_loss = valid(model)\nlowest = min(val_loss, lowest)",
    "metrics = valid(model)\nif metrics['loss'] < lowest:\n    lowest = metrics['loss']",
    "score = valid(model)\nis_better = score > best_acc\nif is_better:\n    best_acc = score",
]
_KEPT_BEST = [
    "score = valid(model)\nif score > best_acc:\n    best_acc = score\n    torch.save(model.state_dict(), f'{folder}/best.pt')",
    "score = valid(model)\nif score > best_acc:\n    best_acc = score\n    best = copy.deepcopy(model.state_dict())",
    "score = valid(model)\nis_best = score > best_acc\nbest_acc = max(score, best_acc)\nif is_best:\n    shutil.copy('last.pt', 'chosen.pt')",
    "score = valid(model)\nbest_acc = max(best_acc, score)\nsave_checkpoint(model, is_best=score == best_acc)",
    # No measure of the model.
    "longest = max(longest, len(batch))",
    "total = loss.item()\nprint(total)",
]


@for_every("inside", _LOST_BEST)
def test_a_best_epoch_without_a_file_of_its_own_is_not_deleted(tmp_path: Path, inside: str) -> None:
    fix = fix_of(tmp_path, {"train.py": program(inside, "best_acc = 0.0\nlowest = float('inf')")})
    assert fix is not None
    assert fix.title.startswith(_LAST)
    assert fix.applicability is Applicability.DISPLAY
    assert "the best checkpoint is lost unless it is among the last ones: `" in fix.reason


@for_every("inside", _KEPT_BEST)
def test_a_best_epoch_that_is_kept_or_not_tracked_leaves_the_fix(tmp_path: Path, inside: str) -> None:
    fix = fix_of(tmp_path, {"train.py": program(inside, "best_acc = 0.0\nlongest = 0")})
    assert fix is not None
    assert fix.applicability is Applicability.UNSAFE


def test_a_best_value_in_another_file_of_the_training_counts(tmp_path: Path) -> None:
    stopping = (
        "class Patience:\n"
        "    def __init__(self):\n"
        "        self.best_score, self.bad = None, 0\n\n"
        "    def update(self, score):\n"
        "        if self.best_score is None or score > self.best_score:\n"
        "            self.best_score, self.bad = score, 0\n"
        "            self.best_score = score\n"
        "        else:\n"
        "            self.bad += 1\n"
    )
    train = program("patience.update(valid(model))", "patience = Patience()").replace("import torch\n", "import torch\nfrom stopping import Patience\n")
    fix = fix_of(tmp_path, {"train.py": train, "stopping.py": stopping})
    assert fix is not None
    assert fix.applicability is Applicability.DISPLAY
    assert "`self.best_score` (stopping.py:8)" in fix.reason


_BY_NUMBER = [
    "if args.resume_epoch:\n    model.load_state_dict(torch.load(f'{folder}/model-{args.resume_epoch:03d}.pt'))",
    "if args.resume_epoch is not None:\n    path = '%s/model-%03d.pt' % (folder, args.resume_epoch)\n    model.load_state_dict(torch.load(path))",
    "number = int(args.resume_step)\npath = folder + '/model-{:03d}.pt'.format(number)\nmodel.load_state_dict(torch.load(path))",
    "resume = f'{folder}/model-{args.resume_epoch:03d}.pt'\nif os.path.exists(resume):\n    load_checkpoint(model, resume)",
]
_FOUND = [
    "last = max(int(one.stem.split('-')[1]) for one in folder.glob('model-*.pt'))\nlatest = f'{folder}/model-{last:03d}.pt'\nmodel.load_state_dict(torch.load(latest))",
    "epoch = int(open('latest').read())\nlatest = f'{folder}/model-{epoch:03d}.pt'\nmodel.load_state_dict(torch.load(latest))",
    "print(f'model-{args.resume_epoch}.pt')",
]


@pytest.mark.parametrize("before", _BY_NUMBER)
def test_a_resume_from_a_number_finds_its_file(tmp_path: Path, before: str) -> None:
    fix = fix_of(tmp_path, {"train.py": program(before=before)})
    assert fix is None or (fix.applicability is Applicability.DISPLAY and "picks a checkpoint by its number" in fix.reason)


@pytest.mark.parametrize("before", _FOUND)
def test_a_resume_from_the_newest_file_leaves_the_fix(tmp_path: Path, before: str) -> None:
    fix = fix_of(tmp_path, {"train.py": program(before=before)})
    assert fix is not None
    assert fix.applicability is Applicability.UNSAFE


def test_a_script_that_evaluates_a_number_finds_its_file(tmp_path: Path) -> None:
    evaluate = (
        "import argparse\n\nimport torch\n\n\n"
        "def main(model):\n"
        "    parser = argparse.ArgumentParser()\n"
        "    parser.add_argument('--epoch', type=int)\n"
        "    args = parser.parse_args()\n"
        "    model.load_state_dict(torch.load(f'runs/model-{args.epoch:03d}.pt', weights_only=True))\n"
    )
    fix = fix_of(tmp_path, {"train.py": program(), "evaluate.py": evaluate})
    assert fix is not None
    assert fix.applicability is Applicability.DISPLAY
    assert "`args.epoch` in line 10 picks a checkpoint by its number, and older ones are deleted (evaluate.py)" in fix.reason
