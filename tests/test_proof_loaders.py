"""Loaders whose workers stay, and samplers that know the epoch: the same samples, in the order that the fix promises."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import proof
import pytest

pytestmark = pytest.mark.torch

LOADER_RULES = [
    "dataloader-without-persistent-workers",
    "dataloader-without-prefetch",
    "dataloader-without-pin-memory",
    "blocking-host-to-device-copy",
]
_TOOK = re.compile(r"^epoch (\d+) took \[([\d, ]+)\] from \[([\d, ]+)\]$", re.M)


def batches(run: proof.Run) -> dict[int, list[int]]:
    """The samples of each epoch in their order."""
    found: dict[int, list[int]] = {}
    for epoch, indices, _ in _TOOK.findall(run.output):
        found.setdefault(int(epoch), []).extend(map(int, indices.split(",")))
    return found


def workers(run: proof.Run) -> dict[int, set[str]]:
    """The processes that the batches of each epoch come from."""
    found: dict[int, set[str]] = {}
    for epoch, _, pids in _TOOK.findall(run.output):
        found.setdefault(int(epoch), set()).update(pids.split(", "))
    return found


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The program as it is, and with the options of its loaders."""
    pytest.importorskip("torch")
    top = tmp_path_factory.mktemp("loaders")
    before, after = proof.copy_of("loaders", top), proof.copy_of("loaders", top, "after")
    assert set(proof.fix(after, unsafe=True, select=LOADER_RULES).by_rule) == set(LOADER_RULES)
    return before, after


@pytest.fixture(scope="module")
def trained(folders: tuple[Path, Path]) -> tuple[proof.Run, proof.Run]:
    """Three epochs with two workers, before and after."""
    first, second = (proof.run(folder) for folder in folders)
    return first, second


def test_the_workers_stay(trained):
    before, after = map(workers, trained)
    assert len(set.union(*before.values())) == 6
    assert after[0] == after[1] == after[2]
    assert len(after[0]) == 2


def test_batches_losses_and_files_are_the_same_bit_by_bit(trained):
    before, after = trained
    assert batches(after) == batches(before)
    assert len(after.losses) == 18
    assert after.losses == before.losses
    assert after.files("runs") == before.files("runs")


def test_without_workers_nothing_raises_and_nothing_changes(folders, trained):
    runs = [proof.run(folder, "--workers", "0", "--output", "none") for folder in folders]
    assert [run.losses for run in runs] == [trained[0].losses] * 2
    assert runs[0].files("none") == runs[1].files("none") == trained[0].files("runs")


def test_a_run_resumes_from_what_was_saved_before_the_fix(folders, trained):
    before, after = folders
    saved = proof.run(before, "--epochs", "1", "--output", "one")
    resumed = proof.run(after, "--resume", str(before / "one" / "last.pt"), "--output", "resumed")
    assert (*saved.losses, *resumed.losses) == trained[0].losses
    assert resumed.files("resumed") == trained[0].files("runs")


def test_an_order_that_hangs_on_the_state_of_the_generator_moves_as_documented(folders):
    # Workers that stay are seeded once, so the generator has drawn fewer numbers when the second epoch is shuffled.
    before, after = (batches(proof.run(folder, "--order", "by-state", "--output", "state")) for folder in folders)
    assert before[0] == after[0]
    assert before[1] != after[1]
    assert all(sorted(taken) == list(range(24)) for run in (before, after) for taken in run.values())


@pytest.mark.skipif(sys.platform == "win32", reason="gloo and torchrun need a POSIX system here")
def test_ranks_take_other_samples_in_each_epoch_once_the_sampler_knows_it(tmp_path):
    before, after = proof.copy_of("shards", tmp_path), proof.copy_of("shards", tmp_path, "after")
    assert set(proof.fix(after, unsafe=True).by_rule) == {"sampler-without-set-epoch"}
    orders = {folder: shards(folder) for folder in (before, after)}
    resumed = shards(after, "--start-epoch", "1", "--output", "resumed")
    assert orders[before][0] == orders[before][1] == orders[before][2] == orders[after][0]
    assert len({tuple(order) for order in orders[after].values()}) == 3
    for ranks in (*orders[before].values(), *orders[after].values()):
        assert len(ranks[0]) == len(ranks[1]) == 8
        assert sorted(sum(ranks, ())) == list(range(16))
    assert resumed == {epoch: orders[after][epoch] for epoch in (1, 2)}


def shards(folder: Path, *arguments: str) -> dict[int, tuple[tuple[int, ...], ...]]:
    """For each epoch what each rank took."""
    proof.run(folder, *arguments, ranks=2)
    output = folder / (arguments[-1] if "--output" in arguments else "runs")
    epochs = sorted({int(path.name.split("-")[1]) for path in output.iterdir()})
    return {
        epoch: tuple(tuple(map(int, (output / f"taken-{epoch}-{rank}").read_text().split())) for rank in (0, 1))
        for epoch in epochs
    }
