"""The memory of the processes that a training starts, and the time of its steps where batches come in bursts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ldlm_lint.bench import samples
from ldlm_lint.evidence.model import Environment, Evidence, Run
from ldlm_lint.probe.footprint import besides
from ldlm_lint.probe.timing import stretch

MIB = 2**20
LINUX = pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="the memory of processes as Linux tells it")


def _evidence(**observations) -> Evidence:
    return Evidence(Run("watch", "1"), Environment(), observations)


FORKED = """
import mmap, os, time
from ldlm_lint.probe.footprint import besides
shared = bytearray(os.urandom(64)) * (1 << 20)
child = os.fork()
if not child:
    own = mmap.mmap(-1, 32 << 20)
    for _ in range(32):
        own.write(b"x" * (1 << 20))
    time.sleep(60)
    os._exit(0)
until = time.monotonic() + 30
while besides(os.getpid()) < 30 << 20 and time.monotonic() < until:
    time.sleep(0.05)
print(besides(os.getpid()) >> 20)
os.kill(child, 9)
os.waitpid(child, 0)
print(besides(os.getpid()) >> 20)
"""


@LINUX
def test_memory_of_a_forked_process_counts_once() -> None:
    done = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True, check=True)
    during, after = map(int, done.stdout.split())
    # The 64 MiB that it shares with its parent are already counted there.
    assert 30 <= during < 50 and after < 10


def test_memory_of_a_system_that_does_not_tell_it(tmp_path: Path) -> None:
    assert besides(os.getpid(), tmp_path) == 0


def test_the_peak_of_a_run_includes_its_workers() -> None:
    ranks = [
        _evidence(footprint={"resident_peak_bytes": 100, "worker_peak_bytes": 40}),
        _evidence(footprint={"resident_peak_bytes": 100}),
    ]
    assert samples.memory(ranks) == (240.0, "resident")
    on_device = _evidence(footprint={"resident_peak_bytes": 100, "worker_peak_bytes": 40, "device_peak_bytes": 7})
    assert samples.memory([on_device]) == (7.0, "device")


BURSTS = [23.0, 2.8, 23.0, 2.6] * 12
FOUR_OF_A_KIND = [90.0, 2.0, 2.0, 2.0] * 12


@pytest.mark.parametrize(
    ("durations", "mean"),
    [(BURSTS, 12.85), (BURSTS[:-1], 12.85), (FOUR_OF_A_KIND, 24.0), (FOUR_OF_A_KIND[:-3], 24.0), ([5.0] * 40, 5.0)],
    ids=["bursts", "ends inside a burst", "four at a time", "four, ends inside", "steady"],
)
def test_steps_that_wait_are_part_of_the_time_of_a_step(durations: list[float], mean: float) -> None:
    seconds, steps = stretch(durations)
    assert seconds / steps == pytest.approx(mean, rel=0.02)


def test_a_short_run_and_a_pause_are_taken_whole() -> None:
    assert stretch([]) == (0, 0)
    assert stretch([3.0, 1.0]) == (4.0, 2)
    assert stretch([1.0] * 20 + [50.0] + [1.0] * 19) == (79.0, 30)


def test_the_time_of_a_step_is_not_the_median() -> None:
    seconds, steps = stretch(BURSTS)
    burst = _evidence(steps={"seconds": {"time": {"n": 48, "median": 2.8}}, "stretch": {"seconds": seconds, "steps": steps}})
    assert samples.step_seconds([burst]) == pytest.approx(12.85, rel=0.02)
    assert samples.step_seconds([_evidence(steps={"stretch": {"seconds": 1.0, "steps": 1}})]) is None


def test_a_rate_of_bursts_is_that_of_their_steps_together() -> None:
    from ldlm_lint.monitor.reader import LogReader

    lines = [f"step {step} | loss 1.0 | samples/s {rate}" for step, rate in enumerate([10.0, 1000.0] * 20)]
    found = samples.of_records(LogReader().feed("\n".join(lines) + "\n"))
    assert found.rate == pytest.approx(2 / (1 / 10 + 1 / 1000), rel=0.01)


BURSTING = """
import sys, time, torch
from torch.utils.data import DataLoader, Dataset
class Rows(Dataset):
    def __len__(self): return 48
    def __getitem__(self, index):
        time.sleep(0.05)
        return torch.ones(4)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
began = None
for rows in DataLoader(Rows(), batch_size=1, num_workers=4):
    optimizer.zero_grad()
    model(rows).sum().backward()
    optimizer.step()
    began = began or time.perf_counter()
print("mean", (time.perf_counter() - began) / 47)
"""


@pytest.mark.torch
def test_a_loader_with_workers_is_timed_as_its_program_does_it(tmp_path: Path) -> None:
    from ldlm_lint.evidence import files
    from ldlm_lint.probe import launch
    from ldlm_lint.probe.settings import Settings

    (tmp_path / "train.py").write_text(BURSTING)
    out = tmp_path / "out"
    out.mkdir()
    command = (sys.executable, "-W", "ignore", "train.py")
    settings = Settings(out=str(out), root=str(tmp_path), run_id="t", command=command, steps=1000, stop=False, timing=True)
    environ = launch.environment_of(settings, {**os.environ, "OMP_NUM_THREADS": "1"})
    done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=True)
    mean = float(done.stdout.split()[1])
    (evidence,) = files.read(out)
    assert samples.step_seconds([evidence]) == pytest.approx(mean, rel=0.5)
    footprint = evidence.observations["footprint"]
    assert footprint["worker_peak_bytes"] > MIB or not Path("/proc/self/smaps_rollup").exists()
