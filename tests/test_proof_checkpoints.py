"""What the fixes of checkpoint files promise: the same training, as few files as they say, and never one too few."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ldlm_lint import engine
from ldlm_lint.config import Config
from ldlm_lint.files.edited import apply_edits
from tests.proof import copy_of, fix, run

pytestmark = pytest.mark.torch

RULE = "unbounded-checkpoints"
KEEP = 3
STEPS = [f"step_{step}.pt" for step in range(2, 25, 2)]


@pytest.fixture(scope="module")
def projects(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The program as it is, and with its fix."""
    folder = tmp_path_factory.mktemp("numbered")
    before, after = copy_of("numbered", folder, "before"), copy_of("numbered", folder, "after")
    take_over(after)
    return before, after


def take_over(project: Path) -> None:
    """Apply the fix that is only shown."""
    report = engine.run([project], replace(Config.load(project), select=(RULE,)), base=project)
    (shown,) = (one.fix for one in report.findings if one.fix is not None)
    path = Path(shown.edits[0].span.path)
    path.write_bytes(apply_edits(path.read_bytes(), list(shown.edits), "utf-8"))


def numbers(folder: Path) -> list[int]:
    """The steps of the numbered checkpoints in a folder."""
    return sorted(int(found[1]) for one in folder.iterdir() if (found := re.fullmatch(r"step_(\d+)\.pt", one.name)))


def loads(path: Path) -> bool:
    """Whether a checkpoint is whole."""
    import torch

    return set(torch.load(path, weights_only=True)) == {"model", "optimizer", "step"}


def test_the_last_ones_are_kept_as_they_were_and_the_losses_are_the_same(projects):
    before, after = (run(project, "--output", "runs/plain") for project in projects)
    assert before.losses == after.losses and len(after.losses) == 24
    old, new = before.files("runs/plain"), after.files("runs/plain")
    assert set(old) == {"best.pt", "latest", *STEPS}
    # Ten sorts behind nine: the last three by number, not by name.
    assert set(new) == {"best.pt", "latest", *STEPS[-KEEP:]}
    assert new == {name: old[name] for name in new}


def test_a_run_resumes_from_a_checkpoint_of_before_the_fix_and_spares_later_ones(projects):
    before, after = projects
    whole = run(before, "--output", "runs/all")
    # Into the folder of a run that went further: nothing that is numbered higher goes.
    folder = copy_of(before / "runs" / "all", after / "runs", "resumed")
    resumed = run(after, "--output", "runs/resumed", "--steps", "16", "--resume", "runs/resumed/step_10.pt")
    assert resumed.losses == whole.losses[10:16]
    assert numbers(folder) == [12, 14, 16, 18, 20, 22, 24]


def test_what_a_link_leads_to_and_what_is_named_otherwise_stays(projects):
    before, after = projects
    run(before, "--output", "runs/start", "--steps", "8")
    folder = after / "runs" / "named"
    (folder / "step_4.pt").mkdir(parents=True)
    others = [
        "step_1.pt.bak",
        "step_1.pth",
        "step_2.5.pt",
        "step_best.pt",
        "step_.pt",
        "mystep_1.pt",
        "step_-1.pt",
        "step_\u00b2.pt",
    ]
    for name in [*others, "step_1.pt", "step_3.pt", "step_00005.pt"]:
        (folder / name).write_bytes(b"by hand")
    links = {"published": "step_1.pt", "dangling": "nowhere", "round": "round", "step_0.pt": "mystep_1.pt"}
    for name, target in links.items():
        (folder / name).symlink_to(target)
    run(after, "--output", "runs/named", "--resume", str(before / "runs/start/step_8.pt"), "--steps", "16")
    kept = {*others, *links, "step_1.pt", "step_4.pt", "best.pt", "latest"}
    assert {one.name for one in folder.iterdir()} == {*kept, "step_12.pt", "step_14.pt", "step_16.pt"}
    assert (folder / "mystep_1.pt").read_bytes() == b"by hand"


def test_files_that_cannot_be_deleted_do_not_end_the_run(projects):
    _, after = projects
    probe = (
        (after / "train.py")
        .read_text()
        .replace("old.unlink(missing_ok=True)", 'raise PermissionError(13, "not yours", str(old))')
    )
    (after / "refused.py").write_text(probe)
    refused = run(after, "--output", "runs/refused", entry="refused.py")
    assert len(refused.losses) == 24
    assert "old checkpoints next to" in refused.output and "not yours" in refused.output
    assert len(numbers(after / "runs" / "refused")) == 12


def test_only_rank_0_deletes(projects):
    before, after = projects
    text = (after / "train.py").read_text()
    # Each rank tells where it calls the function.
    told = text.replace(
        "    path = Path(path)\n", '    path = Path(path)\n    print("deletes", os.environ["RANK"], flush=True)\n'
    )
    assert told != text
    (after / "told.py").write_text(told)
    one, two = (
        run(project, "--output", "runs/pair", entry=entry, ranks=2)
        for project, entry in ((before, "train.py"), (after, "told.py"))
    )
    assert one.losses == two.losses and len(two.losses) == 24
    assert set(re.findall(r"deletes (\d)", two.output)) == {"0"}
    assert numbers(after / "runs" / "pair") == [20, 22, 24]


def test_a_killed_run_leaves_as_many_whole_ones_as_promised(projects):
    _, after = projects
    folder = after / "runs" / "killed"
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "train.py", "--output", "runs/killed", "--steps", "100000"]
    process = subprocess.Popen(command, cwd=after, env=environment, stdout=subprocess.DEVNULL)
    try:
        for seen in watched(folder, process, moments=300):
            assert len(seen) <= KEEP + 1
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    left = numbers(folder)
    whole = [number for number in left if is_whole(folder / f"step_{number}.pt")]
    assert KEEP <= len(whole) <= len(left) <= KEEP + 1
    # The only torn one can be the one that was being written.
    assert set(left) - set(whole) <= {left[-1]}


def watched(folder: Path, process: subprocess.Popen[bytes], moments: int) -> Iterator[list[int]]:
    """The numbered files of a running training at many moments, from its fifth checkpoint on."""
    deadline = time.monotonic() + 120
    while not (folder.exists() and max(numbers(folder), default=0) >= 10):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)
    for _ in range(moments):
        assert process.poll() is None
        yield numbers(folder)


def is_whole(path: Path) -> bool:
    """Whether a checkpoint can be read."""
    import zipfile

    # torch's own files are zip archives, whose directory is written last.
    return zipfile.is_zipfile(path) and loads(path)


KILLER = """
import io, os, runpy, signal, sys
import torch

whole = torch.save


def save(obj, path):
    data = io.BytesIO()
    whole(obj, data)
    second = "best.pt" in str(path) and os.path.exists("runs/torn/best.pt")
    with open(path, "wb") as file:
        if second:
            file.write(data.getvalue()[: len(data.getvalue()) // 2])
            file.flush()
            os.kill(os.getpid(), signal.SIGKILL)
        file.write(data.getvalue())


torch.save = save
sys.argv = ["train.py", "--output", "runs/torn"]
runpy.run_path("train.py", run_name="__main__")
"""


def test_a_run_that_is_killed_during_a_save_keeps_the_old_file(tmp_path):
    import torch

    before, after = copy_of("numbered", tmp_path, "before"), copy_of("numbered", tmp_path, "after")
    fix(after, unsafe=True, select=["non-atomic-checkpoint"])
    for project in (before, after):
        (project / "killer.py").write_text(KILLER)
    torn, kept = (run(project, entry="killer.py", succeeds=False) for project in (before, after))
    assert torn.losses == kept.losses and kept.losses
    with pytest.raises((RuntimeError, OSError)):
        torch.load(before / "runs/torn/best.pt", weights_only=True)
    state = torch.load(after / "runs/torn/best.pt", weights_only=True)
    assert set(state) == {"0.weight", "0.bias", "2.weight", "2.bias"}
    # The run that goes on writes over what the killed one left beside it.
    whole = run(after, "--output", "runs/torn")
    assert whole.losses[: len(kept.losses)] == kept.losses
    assert not (after / "runs/torn/best.pt.tmp").exists()
