"""Evidence of a process that still trains: after which steps it is written, under which name, and what it costs."""

from __future__ import annotations

import dataclasses
import threading
from pathlib import Path
from typing import Any

import pytest

from ldlm_lint.evidence import files
from ldlm_lint.evidence.model import Run, Status
from ldlm_lint.probe import snapshots
from ldlm_lint.probe.session import Observer, Phase, Session
from ldlm_lint.probe.snapshots import Snapshots
from ldlm_lint.probe.watcher import Watcher

RUN = Run("watch", "id", pid=7, status=Status.RUNNING)


class Looks(Observer):
    """Counts the looks; every ``trouble`` of them fails, as where a thread changes what is read."""

    topic = "looks"

    def __init__(self, trouble: int = 0) -> None:
        self.looks, self.trouble, self.concluded = 0, trouble, False

    def conclude(self, session: Session) -> None:
        self.concluded = True

    def collect(self, session: Session) -> Any:
        self.looks += 1
        if self.trouble and self.looks % self.trouble == 0 and not self.concluded:
            raise RuntimeError("dictionary changed size during iteration")
        return {"looks": self.looks}


def _steps(torch: Any, count: int) -> Any:
    optimizer = torch.optim.Optimizer()
    for _ in range(count):
        torch.autograd.backward(None)
        optimizer.step()
    return optimizer


def _watched(torch: Any, out: Path, looks: Looks, steps: int = 20) -> tuple[Watcher, Snapshots]:
    watcher = Watcher(torch, "/", steps, observers=[looks], on_step=lambda: kept.after_step())
    kept = Snapshots(watcher, lambda: RUN, out)
    watcher.session.after_save = kept.after_save
    watcher.start()
    return watcher, kept


def test_evidence_is_there_from_the_first_step_on_and_watching_goes_on(torch: Any, tmp_path: Path) -> None:
    looks = Looks()
    watcher, _ = _watched(torch, tmp_path, looks)
    for step in range(1, 8):
        _steps(torch, 1)
        (one,) = files.read(tmp_path)
        assert (one.run.status, one.run.steps, one.observations["looks"]) == (Status.RUNNING, step, {"looks": step})
        assert one.observations["steps"]["count"] == step
        # The profile of the fourth step is there with the fourth step.
        assert ("profiled step" in one.unavailable) == (step < 4)
    assert not looks.concluded
    assert watcher.finish()["looks"] == {"looks": 8} and looks.concluded
    watcher.release()


def test_a_look_that_fails_is_repeated_and_ends_nothing(torch: Any, tmp_path: Path) -> None:
    watcher, _ = _watched(torch, tmp_path, Looks(trouble=2))
    _steps(torch, 2)
    (one,) = files.read(tmp_path)
    assert "looks" not in one.observations and "while the program ran" in one.unavailable["looks"]
    _steps(torch, 1)
    (one,) = files.read(tmp_path)
    assert one.observations["looks"] == {"looks": 3} and "looks" not in one.unavailable
    assert watcher.finish()["looks"] and not watcher.session.unavailable.keys() - {"profiled step"}
    watcher.release()


def test_a_save_is_written_behind_a_step_by_its_thread_and_not_into_a_profile(torch: Any, tmp_path: Path) -> None:
    looks = Looks()
    watcher, _ = _watched(torch, tmp_path, looks)
    session = watcher.session
    session.after_save()
    assert not looks.looks
    _steps(torch, 2)
    session.after_save()
    assert looks.looks == 3
    other = threading.Thread(target=session.after_save)
    other.start()
    other.join()
    _steps(torch, 1)
    assert session.phase is Phase.PROFILE
    session.after_save()
    assert looks.looks == 4
    watcher.finish()
    watcher.release()


def test_later_writes_take_a_small_share_of_the_time(
    torch: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "FREE", 3)
    looks = Looks()
    watcher, _ = _watched(torch, tmp_path, looks, steps=10_000)
    _steps(torch, 200)
    # Steps of microseconds: a write takes longer than many of them.
    assert 3 <= looks.looks < 60
    watcher.finish()
    watcher.release()


def test_a_rank_that_is_known_later_leaves_one_file(torch: Any, tmp_path: Path) -> None:
    watcher, kept = _watched(torch, tmp_path, Looks())
    _steps(torch, 1)
    watcher.session.rank, watcher.session.world_size = 1, 2
    _steps(torch, 1)
    assert [path.name for path in tmp_path.iterdir()] == ["evidence-rank1-7.json"]
    watcher.session.rank = 0
    watcher.finish()
    watcher.release()
    (one,) = files.read(tmp_path)
    kept.end(files.write(dataclasses.replace(one, run=dataclasses.replace(one.run, rank=0)), tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["evidence-rank0-7.json"]


def test_a_folder_that_cannot_be_written_ends_it(torch: Any, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    looks = Looks()
    watcher, _ = _watched(torch, tmp_path / "file", looks)
    _steps(torch, 5)
    assert looks.looks == 1 and not watcher.session.unavailable.keys() - {"profiled step"}
    watcher.finish()
    watcher.release()
