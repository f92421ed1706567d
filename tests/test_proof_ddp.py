"""DDP, accumulation, optimizers and schedules, trained on this machine's CPU before and after their fixes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from proof import Run, copy_of, fix, run

pytestmark = pytest.mark.torch

_REDUCTIONS = re.compile(r"^reductions (\d+) (\d+)$", re.MULTILINE)
_ENDS = re.compile(r"^rank (\d) ends with (\w+), fused (\w+)$", re.MULTILINE)
_TAKEN = re.compile(r"^norm (\S+) rate (\S+)$", re.MULTILINE)


def reductions(done: Run) -> list[int]:
    """How many buckets were all-reduced for each step of the optimizer."""
    return [int(count) for _, count in _REDUCTIONS.findall(done.output)]


def ends(done: Run) -> set[str]:
    """The digests of the parameters that the ranks ended with: one if they agree."""
    return {digest for _, digest, _ in _ENDS.findall(done.output)}


def distance(one: Path, other: Path) -> float:
    """The largest difference of any parameter between two saved models."""
    import torch

    left, right = (torch.load(path, weights_only=True) for path in (one, other))
    return max((left[name] - right[name]).abs().max().item() for name in left)


def losses_agree(one: Run, other: Run, tolerance: float) -> bool:
    """Whether two runs took the same steps to the same losses."""
    pairs = zip(one.losses, other.losses, strict=True)
    return all(a == b and abs(x - y) <= tolerance for (a, x), (b, y) in pairs)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Two ranks, as the program is written."""
    return run(copy_of("ddp_pair", tmp_path_factory.mktemp("pair")), ranks=2)


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory, pair: Run) -> Path:
    """The program with micro-batches that stay local, and the checkpoint that the other one wrote."""
    project = copy_of("ddp_pair", tmp_path_factory.mktemp("pair"), "after")
    fix(project, unsafe=True, select=["accumulation-without-no-sync"])
    (project / "before.pt").write_bytes((pair.folder / "step10.pt").read_bytes())
    return project


def test_micro_batches_are_reduced_once_per_step(pair, local):
    after = run(local, ranks=2)
    # 78 micro-batches: 19 steps of four, and one of the two that are left, whose gradients must be reduced, too.
    assert len(pair.losses) == 20
    assert reductions(pair)[1:] == [4] * 18 + [2]
    assert reductions(after)[1:] == [1] * 19
    assert len(ends(pair)) == 1
    assert len(ends(after)) == 1
    assert losses_agree(pair, after, 1e-5)
    assert distance(pair.folder / "last.pt", local / "last.pt") < 1e-5


def test_a_checkpoint_from_before_no_sync_is_resumed(pair, local):
    resumed = run(local, "--resume", "before.pt", ranks=2)
    assert [step for step, _ in resumed.losses] == list(range(11, 21))
    assert reductions(resumed)[1:] == [1] * 9
    assert len(ends(resumed)) == 1
    assert distance(pair.folder / "last.pt", local / "last.pt") < 1e-5


def test_one_rank_without_ddp_runs_as_before(local, tmp_path):
    alone = run(copy_of("ddp_pair", tmp_path))
    after = run(local)
    assert after.losses == alone.losses
    assert ends(after) == ends(alone)


def test_a_view_of_the_buckets_changes_no_bit(pair, tmp_path):
    project = copy_of("ddp_pair", tmp_path)
    fix(project, unsafe=True, select=["ddp-gradient-copy"])
    assert b"gradient_as_bucket_view=True" in (project / "train.py").read_bytes()
    (project / "before.pt").write_bytes((pair.folder / "step10.pt").read_bytes())
    after = run(project, ranks=2)
    assert after.losses == pair.losses
    assert ends(after) == ends(pair)
    assert reductions(after) == reductions(pair)
    resumed = run(project, "--resume", "before.pt", ranks=2)
    assert resumed.losses == pair.losses[10:]


def test_all_fixes_together_train_as_before(pair, tmp_path):
    project = copy_of("ddp_pair", tmp_path)
    fix(project, unsafe=True)
    text = (project / "train.py").read_text()
    assert "no_sync()" in text and "gradient_as_bucket_view=True" in text and "fused=torch.cuda.is_available()" in text
    after = run(project, ranks=2)
    assert reductions(after)[1:] == [1] * 19
    assert len(ends(after)) == 1
    assert losses_agree(pair, after, 1e-5)


def test_a_fused_optimizer_takes_the_same_steps(pair, tmp_path):
    alone = run(copy_of("ddp_pair", tmp_path))
    project = copy_of("ddp_pair", tmp_path, "after")
    fix(project, unsafe=True, select=["optimizer-not-fused"])
    program = project / "train.py"
    text = program.read_text()
    assert "fused=torch.cuda.is_available()" in text
    # Without a GPU the fix chooses what torch chose before.
    assert run(project).losses == alone.losses
    # The fused kernels of the CPU differ in the last bits; a checkpoint from before is resumed, and turns them off.
    program.write_text(text.replace("fused=torch.cuda.is_available()", "fused=True"))
    fused = run(project)
    assert "fused True" in fused.output
    assert fused.losses != alone.losses
    assert losses_agree(alone, fused, 1e-5)
    (project / "before.pt").write_bytes((alone.folder / "step10.pt").read_bytes())
    resumed = run(project, "--resume", "before.pt")
    assert resumed.losses == alone.losses[10:]
    assert "fused None" in resumed.output


def taken(done: Run) -> Iterator[tuple[float, float]]:
    """The norm of the gradients and the learning rate of each step."""
    return ((float(norm), float(rate)) for norm, rate in _TAKEN.findall(done.output))


def test_steps_of_micro_batches_equal_those_of_one_batch(tmp_path):
    before = run(copy_of("micro_batches", tmp_path))
    project = copy_of("micro_batches", tmp_path, "after")
    outcome = fix(project, unsafe=True)
    rules = {"accumulation-loss-not-scaled", "clip-before-unscale", "scheduler-per-micro-batch"}
    assert not rules & {one.rule for one in outcome.report.findings}
    after = run(project)
    last = (project / "last.pt").read_bytes()
    (project / "micro.pt").write_bytes(last)
    # The same data in batches of four times the size, a step for each.
    whole = run(project, "--accumulate", "1", "--merged", "4")
    # Clipping saw the scale (1024) and the sum of four micro-batches, and the schedule ran four times too fast.
    assert min(norm for norm, _ in taken(before)) > 100
    assert [rate for _, rate in taken(before)][:3] == pytest.approx([0.5 * 0.9**k for k in (3, 7, 11)], rel=1e-3)
    assert [rate for _, rate in taken(after)] == pytest.approx([0.5 * 0.9**k for k in range(20)], rel=1e-2)
    for seen, wanted in zip(taken(after), taken(whole), strict=True):
        assert seen == pytest.approx(wanted, rel=1e-3)
    assert distance(project / "micro.pt", project / "last.pt") < 1e-5
    assert distance(project / "micro.pt", tmp_path / "before" / "last.pt") > 1e-2
