"""A program on the Trainer of transformers with its settings in YAML files, before and after its fixes."""

from __future__ import annotations

import math
import shutil
from pathlib import Path

import proof
import pytest
import yaml
from proof import Run

SAFE = {"deprecated-amp-api"}
UNSAFE = {
    "dataloader-worker-options-without-workers",
    "excessive-collective-timeout",
    "optimizer-not-fused",
    "unbounded-checkpoints",
}

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program as it is."""
    for package in ("torch", "transformers", "accelerate"):
        pytest.importorskip(package)
    return proof.copy_of("trainer", tmp_path_factory.mktemp("trainer"))


@pytest.fixture(scope="module")
def first(before: Path) -> Run:
    """The program's run as it is."""
    return proof.run(before)


@pytest.fixture(scope="module")
def after(before: Path) -> Path:
    """The program with the unsafe fixes of its main configuration."""
    copy = proof.copy_of("trainer", before.parent, "after")
    outcome = proof.fix(copy, unsafe=True, select=sorted(UNSAFE))
    assert set(outcome.by_rule) == UNSAFE
    return copy


def checkpoints(run: Run) -> set[str]:
    """The folders of checkpoints that a run left."""
    return {name.split("/")[0] for name in run.files("runs/base")}


def test_safe_fixes_change_no_bit_of_twenty_steps(before, first, tmp_path):
    copy = proof.copy_of("trainer", tmp_path, "safe")
    outcome = proof.fix(copy, select=["ALL"])
    assert set(outcome.by_rule) == SAFE
    second = proof.run(copy)
    assert len(first.losses) == 20
    assert first.losses == second.losses
    assert first.files("runs") == second.files("runs") != {}


def test_unsafe_fixes_train_to_the_same_losses_with_what_they_claim(first, after):
    second = proof.run(after)
    assert close(first, second), (first.losses, second.losses)
    assert len(checkpoints(first)) == 10
    assert checkpoints(second) == {"checkpoint-16", "checkpoint-18", "checkpoint-20"}
    settings = yaml.safe_load((after / "config.yaml").read_text(encoding="utf-8"))
    assert settings["ddp_timeout"] == 1800
    assert "fused = 1" in second.output and "fused = 0" in first.output


def test_a_configuration_that_raised_works(before, after):
    broken = proof.run(before, "--config", "debug.yaml", succeeds=False)
    assert "ValueError: --dataloader_prefetch_factor can only be set" in broken.output
    assert len(proof.run(after, "--config", "debug.yaml").losses) == 2


def test_a_run_that_began_before_the_unsafe_fixes_goes_on_after_them(before, first, after, tmp_path):
    resumed = []
    for folder in (before, after):
        copy = proof.copy_of(folder, tmp_path, folder.name)
        shutil.copytree(first.folder / "runs" / "base" / "checkpoint-10", copy / "runs" / "base" / "checkpoint-10")
        resumed.append(proof.run(copy, "--resume"))
    again, second = resumed
    assert [step for step, _ in again.losses] == list(range(11, 21))
    assert close(again, second), (again.losses, second.losses)


def close(first: Run, second: Run) -> bool:
    """Whether two runs took the same steps with losses that differ by rounding at most."""
    return len(first.losses) == len(second.losses) and all(
        step == same and math.isclose(loss, other, rel_tol=1e-4)
        for (step, loss), (same, other) in zip(first.losses, second.losses, strict=True)
    )
