"""The example repository, trained before and after its fixes, alone and on two ranks through its own launch script."""

from __future__ import annotations

import json
import math
import shutil
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import proof
import pytest
from proof import Run

EXAMPLE = Path(__file__).parent.parent / "examples" / "latent-captions"
OBSERVER = proof.PROGRAMS / "latent_captions" / "observe.py"
STEPS = 20
# Six optimizer steps make an epoch, so that the loader is iterated four times.
QUICK = {"data": {"num_samples": 96, "num_workers": 1}, "training": {"batch_size": 8, "log_every": 1000}}
ALONE = ("--config", "configs/quick.json", "--output", "out", "--steps", str(STEPS), "--save-every", "2")

Losses = tuple[tuple[int, float], ...]

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(sys.platform == "win32", reason="the launch script needs bash"),
]


def project(into: Path, name: str) -> Path:
    """A copy of the example with a quick configuration beside its own."""
    copy = proof.copy_of(EXAMPLE, into, name)
    values = json.loads((copy / "configs" / "base.json").read_text(encoding="utf-8"))
    for section, changes in QUICK.items():
        values[section].update(changes)
    (copy / "configs" / "quick.json").write_text(json.dumps(values), encoding="utf-8")
    return copy


def alone(folder: Path, *arguments: str) -> Run:
    """Train on one process without a process group."""
    return proof.run(folder, "train.py", *ALONE, *arguments, entry=str(OBSERVER))


def launched(folder: Path, ranks: int, port: int, workers: int) -> Run:
    """Train as ``scripts/train.sh`` does it."""
    values = {"NPROC_PER_NODE": ranks, "MASTER_PORT": port, "STEPS": STEPS, "BATCH_SIZE": 8, "SAVE_EVERY": 2}
    values |= {"CONFIG": "configs/quick.json", "OUTPUT": "out", "DATA_WORKERS": workers}
    environment = {name: str(value) for name, value in values.items()}
    return proof.run_script(folder, "scripts/train.sh", observer=OBSERVER, environment=environment)


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example as it is."""
    pytest.importorskip("torch")
    return project(tmp_path_factory.mktemp("example"), "before")


@pytest.fixture(scope="module")
def safe(before: Path) -> Path:
    """The example with the safe fixes of all rules."""
    copy = project(before.parent, "safe")
    proof.fix(copy, select=["ALL"])
    return copy


@pytest.fixture(scope="module")
def unsafe(before: Path) -> Path:
    """The example with every fix of all rules."""
    copy = project(before.parent, "unsafe")
    proof.fix(copy, unsafe=True, select=["ALL", "missing-activation-checkpointing"])
    return copy


@pytest.fixture(scope="module")
def runs() -> Callable[..., Run]:
    """Each project trained once, alone or on two ranks by its script; the checkpoints lie in ``out-<ranks>``."""
    done: dict[tuple[Path, int], Run] = {}
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]

    def trained(folder: Path, ranks: int, *, workers: int = 1) -> Run:
        if (folder, ranks) not in done:
            by_script = ranks > 1
            done[folder, ranks] = launched(folder, ranks, port, workers) if by_script else alone(folder)
            (folder / "out").rename(folder / f"out-{ranks}")
        return done[folder, ranks]

    return trained


def lines(run: Run) -> list[str]:
    """The losses of all ranks, bit for bit."""
    return sorted(line for line in run.output.splitlines() if " loss 0x" in line)


def close(losses: Losses, others: Losses) -> bool:
    """Whether two runs took the same steps with losses that differ by rounding at most."""
    return len(losses) == len(others) and all(
        step == same and math.isclose(loss, other, rel_tol=1e-5)
        for (step, loss), (same, other) in zip(losses, others, strict=True)
    )


@pytest.mark.parametrize("ranks", [1, 2])
def test_safe_fixes_change_no_bit_of_a_run(ranks, before, safe, runs):
    first, second = runs(before, ranks), runs(safe, ranks)
    assert len(lines(first)) == ranks * STEPS
    assert lines(first) == lines(second)
    assert first.files(f"out-{ranks}") == second.files(f"out-{ranks}") != {}


def test_safe_fixes_of_the_launch_take_one_variable_away(before, safe, runs):
    first, second = runs(before, 2), runs(safe, 2)
    assert first.launch.words == second.launch.words
    was, now = dict(first.launch.environment), dict(second.launch.environment)
    assert was.pop("NCCL_TIMEOUT") == "7200"
    # Each copy has its own folder, and stubs of its own.
    assert {name for name in was.keys() | now.keys() if was.get(name) != now.get(name)} <= {
        "PATH",
        "PWD",
        "OLDPWD",
        "_",
    }


def test_unsafe_fixes_train_to_the_same_losses_with_what_they_claim(before, unsafe, runs):
    """On two ranks, without loader processes: their restart in each epoch draws from the stream that masks words."""
    first, second = runs(before, 2), runs(unsafe, 2, workers=0)
    assert close(first.losses, second.losses), (first.losses, second.losses)
    # missing-activation-checkpointing
    assert second.value("saved bytes") < 0.5 * first.value("saved bytes")
    # That of unbounded-checkpoints is only shown: all files are there.
    assert first.value("files") == second.value("files") == STEPS // 2


def test_unsafe_fixes_start_the_loader_once(before, unsafe, runs):
    """The first of the four epochs is the same; in the others words are masked by other random numbers."""
    first, second = runs(before, 1), runs(unsafe, 1)
    assert first.value("loader processes") == 4
    assert second.value("loader processes") == 1
    assert close(first.losses[:6], second.losses[:6])
    assert all(
        math.isclose(loss, other, rel_tol=0.1)
        for (_, loss), (_, other) in zip(first.losses, second.losses, strict=True)
    )


def test_unsafe_fixes_of_the_launch_leave_the_process_group_a_sane_timeout(before, unsafe, runs):
    first, second = runs(before, 2), runs(unsafe, 2, workers=0)
    assert (first.value("timeout"), second.value("timeout")) == (36000, 1800)
    told = {name: value for name, value in second.launch.environment.items() if "NCCL" in name}
    assert "NCCL_TIMEOUT" not in told and "NCCL_BLOCKING_WAIT" not in told and "TORCH_NCCL_BLOCKING_WAIT" not in told
    assert int(told.get("TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC", 480)) <= 1800
    assert told.get("TORCH_NCCL_ENABLE_MONITORING", "1") == "1"


def test_a_run_that_began_before_the_unsafe_fixes_goes_on_after_them(before, unsafe, runs, tmp_path):
    runs(before, 1)
    resumed = []
    for folder in (before, unsafe):
        output = tmp_path / folder.name
        output.mkdir()
        shutil.copy(before / "out-1" / "step_10.pt", output)
        resumed.append(alone(folder, "--resume", "--num-workers", "0", "--output", str(output)))
    first, second = resumed
    assert [step for step, _ in first.losses] == list(range(11, STEPS + 1))
    assert close(first.losses, second.losses), (first.losses, second.losses)
