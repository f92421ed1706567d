"""Logs that grow: alarms come while they do, rotation goes on with the series, and Ctrl-C ends with the report."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from following import in_turn

from ldlm_lint.monitor import live, sources
from ldlm_lint.monitor.health import Health


def line(step: int, loss: float | str = 2.5) -> str:
    return f"iter {step}: loss {loss}, time 65.00ms, mfu 0.02%\n"


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def followed(path: Path, turns: list[Callable[[], None]]) -> tuple[Health, str]:
    """Follow a log; each time there is nothing new the next turn is taken, and after the last one it ends."""
    health, out = Health(), io.StringIO()
    live.follow(health, sources.find(str(path)), out, least_silence=120.0, stop=in_turn(turns), poll=0.0)
    health.close()
    return health, out.getvalue()


def test_alarms_come_as_the_log_grows(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text("".join(line(step, 2.5 + step % 3 / 100) for step in range(30)))
    health, out = followed(
        path, [lambda: append(path, line(30, "nan")), lambda: None, lambda: append(path, line(31, "nan")), lambda: None]
    )
    assert out.startswith("critical nan-loss  train.log:31 (step 30): loss is nan at step 30; finite until step 29")
    assert out.count("nan-loss") == 1 and health.book.alarms[0].count == 2
    assert health.records == 32


def test_half_a_line_waits_for_its_end(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text("iter 1: loss 2.")
    health, _ = followed(path, [lambda: None, lambda: append(path, "75, time 65.00ms, mfu 0.02%\n"), lambda: None])
    assert [one.curve.last for one in health.series if one.key.named.key == "loss"] == [2.75]


def test_rotation_goes_on_with_the_series(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text("".join(line(step) for step in range(10)))

    def rotate() -> None:
        path.rename(tmp_path / "train.log.1")
        path.write_text("".join(line(step) for step in range(10, 20)))

    health, _ = followed(path, [rotate, lambda: None, lambda: None])
    assert [one.curve.count for one in health.series if one.key.named.key == "loss"] == [20]


def test_silence_is_told_once_and_only_if_it_is_long_for_this_log() -> None:
    now = [0.0]
    quiet = live.Quiet(least=60.0, clock=lambda: now[0])
    for _ in range(10):
        now[0] += 2
        quiet.news()
    now[0] += 59
    assert quiet.silence() is None
    now[0] += 2
    gone, limit = quiet.silence() or (0.0, 0.0)
    assert (gone, limit) == (61.0, 60.0) and quiet.silence() is None
    slow = live.Quiet(least=60.0, clock=lambda: now[0])
    for _ in range(10):
        now[0] += 30
        slow.news()
    now[0] += 200
    assert slow.silence() is None


def test_ctrl_c_ends_with_the_report(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text("".join(line(step, 2.5 + step % 3 / 100) for step in range(30)) + line(30, "nan"))
    command = [sys.executable, "-m", "ldlm_lint", "monitor", "--follow", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        first = child.stdout.readline()
        assert first.startswith("critical nan-loss"), first
        time.sleep(0.2)
        os.kill(child.pid, signal.SIGINT)
        out, err = child.communicate(timeout=60)
    assert child.returncode == 1, err
    assert "1 alarm (1 critical, 0 warning); 31 records in 1 source." in out and "Traceback" not in err
