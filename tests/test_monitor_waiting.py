"""Logs that do not exist yet, and what a terminal shows while they are followed: step, last value, age, GPUs."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from collected import for_every
from following import in_turn

from ldlm_lint.cli import main
from ldlm_lint.monitor import live, sources
from ldlm_lint.monitor.arrivals import Arrivals
from ldlm_lint.monitor.health import Health
from ldlm_lint.monitor.progress import Progress, of_how_many
from ldlm_lint.monitor.reader import LogReader
from ldlm_lint.monitor.sources import Source
from ldlm_lint.monitor.view import GpuWatch, duration, view
from ldlm_lint.probe.machine import Gpu, Gpus


def line(step: int, loss: float | str = 2.5) -> str:
    return f"iter {step}: loss {loss}, time 65.00ms, mfu 0.02%\n"


def followed(path: Path, turns: list[Callable[[], object]]) -> Health:
    """Follow a path at which there may be nothing; each look that brings nothing is followed by the next turn."""
    health = Health()
    arrivals = Arrivals([str(path)], clock=lambda: 0.0)
    live.follow(health, [], io.StringIO(), least_silence=120.0, stop=in_turn(turns), poll=0.0, arrivals=arrivals)
    health.close()
    return health


def steps(health: Health) -> dict[str, int]:
    """How many losses each source has."""
    return {one.key.source: one.curve.count for one in health.series if one.key.named.key == "loss"}


def test_a_log_is_waited_for_and_said_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "train.log"
    turns = [lambda: None, lambda: None, lambda: path.write_text(line(0) + line(1)), lambda: None]
    assert steps(followed(path, turns)) == {"train.log": 2}
    assert capsys.readouterr().err == f"waiting for {path}\n"


def test_a_folder_may_be_missing_then_empty_then_grow(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "runs"
    turns = [
        lambda: None,
        folder.mkdir,
        lambda: None,
        lambda: (folder / "rank0.log").write_text(line(0)),
        lambda: None,
        lambda: (folder / "rank1.log").write_text(line(0) + line(1)),
        lambda: None,
        lambda: None,
    ]
    assert steps(followed(folder, turns)) == {"rank0.log": 1, "rank1.log": 2}
    assert capsys.readouterr().err == f"waiting for {folder}\n"


def test_an_empty_file_is_read_once_its_kind_is_known(tmp_path: Path) -> None:
    path = tmp_path / "metrics.csv"
    path.write_text("")
    health = followed(path, [lambda: None, lambda: path.write_text("epoch,step,train_loss\n0,1,2.5\n"), lambda: None])
    assert [(one.key.template.name, one.curve.last) for one in health.series if one.key.named.key] == [("csv", 2.5)]


def test_a_history_goes_on_in_the_next_checkpoint(tmp_path: Path) -> None:
    history: list[dict[str, float]] = []

    def save(step: int, half: bool = False) -> Callable[[], None]:
        def turn() -> None:
            if not half:
                history.append({"loss": 3 - step / 10, "step": step})
            folder = tmp_path / f"checkpoint-{step}"
            folder.mkdir(exist_ok=True)
            text = json.dumps({"log_history": history, "padding": "x" * step})
            (folder / "trainer_state.json").write_text(text[:20] + " " * 200 if half else text)

        return turn

    turns = [save(1), lambda: None, save(2, half=True), lambda: None, save(2), lambda: None, save(3), lambda: None]
    assert steps(followed(tmp_path, turns)) == {os.path.join("checkpoint-1", "trainer_state.json"): 3}


def test_a_log_that_is_gone_before_it_is_read_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text(line(0))
    arrivals = Arrivals([str(path)], clock=lambda: 0.0)
    (found,) = arrivals.look(follow=True)
    assert arrivals.look(follow=True) == [] and not arrivals.waiting
    path.unlink()
    arrivals.forget(found)
    assert arrivals.look(follow=True) == [] and list(arrivals.waiting) == [str(path)]
    path.write_text(line(0))
    assert arrivals.look(follow=True) == [found]


@for_every(
    ("text", "step", "total"),
    [
        ("[ 120/5000] loss 2.5", 120, 5000),
        (" iteration      120/  500000 | loss 2.5", 120, 500000),
        ("step 0120/5000: loss 2.5", 120, 5000),
        (" 24%|██▍ | 120/500 [00:03<00:10]", 120, 500),
        ("epoch 1/10 step 1/500", 1, None),  # which of them is not said
        ("step 120 loss 0.120/3", 120, None),
        ("step 12 of ./logs/12/40/x", 12, None),
        ("step 30/12", 30, None),
        ("step 120 loss 2.5", 120, None),
    ],
)
def test_of_how_many(text: str, step: int, total: int | None) -> None:
    assert of_how_many(text, step) == total


def progress_of(text: str, *, clock: Callable[[], float] = lambda: 0.0, **options: object) -> Progress:
    one = Progress(Source("-", "text"), clock, **options)  # type: ignore[arg-type]
    one.take(LogReader().read(text))
    return one


def test_a_total_is_believed_once_two_steps_say_it() -> None:
    assert progress_of("11/26 10:00 step: 11 loss: 2.5\n11/26 10:01 step: 12 loss: 2.5\n").total is None
    one = progress_of("[11/500] loss 2.5\n[12/500] loss 2.5\n")
    assert (one.step, one.total) == (12, 500)


def bar(step: int, total: int) -> str:
    return f"{100 * step // total}%|##  | {step}/{total} [00:03<00:10, 12.5it/s]\n"


def test_the_bar_of_an_evaluation_is_not_the_step_of_the_training() -> None:
    text = "".join(bar(step, 60) for step in range(1, 31)) + "".join(bar(step, 25) for step in range(1, 26))
    one = progress_of(text)
    assert (one.step, one.total) == (30, 60)
    one.take(LogReader().read("{'loss': 2.5, 'learning_rate': 1e-4, 'epoch': 0.5}\n" + bar(31, 60)))
    assert (one.step, one.epoch) == (31, 0.5)
    one.take(LogReader().read("".join(bar(step % 40 + 1, 40) for step in range(2100))))
    assert one.total == 40


def test_lines_with_a_loss_say_the_step_and_bars_do_not() -> None:
    text = "".join(bar(step, 2) for step in (1, 2)) + "[11/500] loss 2.5\n[12/500] loss 2.5\n" + bar(3, 9)
    one = progress_of(text)
    assert (one.step, one.total) == (12, 500)


def test_the_age_of_the_last_line_begins_with_that_of_the_file(tmp_path: Path) -> None:
    path, now = tmp_path / "train.log", [1000.0]
    path.write_text(line(7))
    os.utime(path, (5000.0, 5000.0))
    one = Progress(Source(str(path), "text"), lambda: now[0], lambda: 5030.0)
    assert one.age is None
    one.take(LogReader().read(line(7)))
    assert (one.step, one.age) == (7, 30.0)
    now[0] += 15
    assert one.age == 45.0
    one.take(LogReader().read(line(8)))
    assert one.age == 0.0


@pytest.mark.parametrize(("value", "words"), [(0.4, "0 s"), (125.9, "2 min 5 s"), (12000, "3 h 20 min")])
def test_durations(value: float, words: str) -> None:
    assert duration(value) == words


def test_the_time_left_is_told_from_the_pace_since_the_log_was_caught_up() -> None:
    now = [0.0]
    one = Progress(Source("-", "text"), lambda: now[0])
    reader = LogReader()

    def take(steps: range, seconds: float, caught_up: bool = True) -> None:
        now[0] += seconds
        one.take(reader.read("".join(f"step {step}/1000 loss 2.{step}\n" for step in steps)), caught_up)

    take(range(100), 0.0, caught_up=False)
    take(range(100, 200), 1.0)
    assert one.left is None
    for first in range(200, 220, 2):
        take(range(first, first + 2), 6.0)
    # 2 steps in 6 seconds, 781 steps to go; what was in the log before counts for nothing.
    assert one.left == pytest.approx(3 * (1000 - 219))
    assert "step 219 of 1,000, about 39 min 3 s left, last line 0 s ago" in shown(Health(), {"stdin": one}, [], ())
    take(range(50, 60), 6.0)
    assert one.left is None


def shown(health: Health, progress: dict[str, Progress], waiting: list[str], gpus: tuple[Gpu, ...]) -> str:
    from rich.console import Console

    out = io.StringIO()
    Console(file=out, width=120).print(view(health, progress, waiting, gpus, 120, 40))
    return out.getvalue()


def test_the_view_keeps_the_address_of_the_page_in_sight() -> None:
    from rich.console import Console

    out = io.StringIO()
    Console(file=out, width=120).print(view(Health(), {}, ["val.log"], (), 120, 10, "http://127.0.0.1:1/x/"))
    assert "in the browser: http://127.0.0.1:1/x/\n" in out.getvalue()
    assert "in the browser" not in shown(Health(), {}, ["val.log"], ())


def test_the_view_says_step_age_last_value_and_gpus() -> None:
    health, text = Health(), "".join(f"[{step}/500] loss {3 - step / 10}\n" for step in range(1, 12))
    text += "[12/500] loss nan\n"
    for read in LogReader().read(text):
        health.take("train.log", *read)
    health.close()
    now = [0.0]
    one = progress_of(text, clock=lambda: now[0])
    now[0] = 95.0
    gib = 2**30
    gpus = (Gpu(0, "A100", memory_total=80 * gib, memory_used=41 * gib, utilization=97), Gpu(1, "A100", mig=True))
    out = shown(health, {"train.log": one}, ["val.log"], gpus)
    assert "train.log: step 12 of 500, last line 1 min 35 s ago\n" in out
    assert "waiting for val.log\n" in out
    assert "GPU 0 of this machine: 41.0 of 80.0 GiB used, 97 % busy\n" in out and "GPU 1" not in out
    loss = next(row for row in out.splitlines() if row.startswith("loss"))
    assert loss.split()[1] == "nan" and "11 values + 1 nan/inf" in loss
    assert "critical nan-loss" in out and "no alarms" not in out
    assert "no alarms" not in shown(Health(), {}, ["train.log"], ())


def test_alarms_have_room_in_a_low_terminal() -> None:
    from rich.console import Console

    health = Health()
    for step in range(40):
        loss = "nan" if step == 39 else f"{3 - step / 20:.2f}"
        text = f"step {step} loss {loss} " + " ".join(f"{name} {step}.5" for name in ("grad_norm", "lr", "tokens/s"))
        for read in LogReader().read(f"{text} RuntimeError: {'long ' * 60}\n"):
            health.take("train.log", *read)
    health.close()
    out = io.StringIO()
    Console(file=out, width=80).print(view(health, {}, [], (), 80, 6))
    rows = out.getvalue().splitlines()
    assert len(rows) <= 6 and any(row.startswith("critical nan-loss") for row in rows)
    assert "Ctrl-C" in rows[-1]


def test_nvml_is_asked_now_and_then_and_never_again_where_it_is_not() -> None:
    now, answers = [0.0], iter([Gpus((Gpu(0, "A100"),)), Gpus((Gpu(0, "A100"),)), Gpus(reason="no driver")])
    watch = GpuWatch(lambda: next(answers), lambda: now[0])
    seen = []
    for now[0] in (0.0, 1.9, 2.1, 4.2, 9.0, 20.0):
        seen.append(len(watch.now))
    assert seen == [1, 1, 1, 0, 0, 0]


def test_the_report_shows_the_last_value_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "train.log"
    path.write_text("".join(line(step, 2.5 if step < 9 else "nan") for step in range(10)))
    assert main(["monitor", str(path), "--json", str(tmp_path / "out.json")]) == 1
    (row,) = (row for row in capsys.readouterr().out.splitlines() if row.strip().startswith("loss [train]"))
    assert row.split()[2:8] == ["9", "+", "1", "nan/inf", "2.5", "nan"]
    series = json.loads((tmp_path / "out.json").read_text())["series"]
    assert next(one["last"] for one in series if one["key"] == "loss") is None


@pytest.mark.parametrize("words", [["x.log", "--interval", "1"], *(["-f", "x", "--interval", one] for one in ("0", "0.01", "nan", "soon"))])  # fmt: skip
def test_wrong_intervals(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["monitor", *words]) == 2
    assert "interval" in capsys.readouterr().err


def test_without_follow_a_missing_log_is_an_error_that_names_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path, why in ((tmp_path / "gone.log", "no such file or folder"), (tmp_path, "there is no log in this folder")):
        assert main(["monitor", str(path)]) == 3
        assert f"{path}: {why}; with --follow, ldlm-lint monitor waits for it" in capsys.readouterr().err
    assert main(["monitor", "--compare", str(tmp_path / "a"), str(tmp_path / "b")]) == 3
    assert "--follow" not in capsys.readouterr().err


def following(path: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "ldlm_lint", "monitor", "--follow", "--interval", "0.1", str(path)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_real_wait_ends_with_the_alarm_and_the_report(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    with following(path) as child:
        assert child.stdout is not None and child.stderr is not None
        assert child.stderr.readline() == f"waiting for {path}\n"
        path.write_text("".join(line(step) for step in range(30)) + line(30, "nan"))
        assert child.stdout.readline().startswith("critical nan-loss  train.log:31")
        time.sleep(0.3)
        os.kill(child.pid, signal.SIGINT)
        out, err = child.communicate(timeout=60)
    assert child.returncode == 1 and err == "" and "31 records in 1 source." in out


def test_standard_input_is_followed_to_its_end(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "ldlm_lint", "monitor", "--follow", "-"]
    text = "".join(line(step) for step in range(30)) + line(30, "nan")
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1 and done.stdout.startswith("critical nan-loss  stdin:31"), done.stderr


def test_ctrl_c_while_waiting_says_that_nothing_came(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    with following(path) as child:
        assert child.stderr is not None
        child.stderr.readline()
        os.kill(child.pid, signal.SIGINT)
        out, err = child.communicate(timeout=60)
    assert (child.returncode, out) == (3, "") and f"{path}: no log appeared" in err and "Traceback" not in err


def test_a_rotation_that_is_seen_half_done_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "train.log"
    path.write_text(line(0))
    opened = Path.open

    def gone(self: Path, *arguments: str) -> object:
        raise FileNotFoundError(self)

    def rotate() -> None:
        path.rename(tmp_path / "old")
        path.write_text(line(1))
        monkeypatch.setattr(Path, "open", gone)

    turns: Iterator[Callable[[], object]] = iter([rotate, lambda: monkeypatch.setattr(Path, "open", opened)])

    def stop() -> bool:
        turn = next(turns, None)
        if turn is not None:
            turn()
        return turn is None

    reads = sources.read(Source(str(path), "text"), follow=True, stop=stop, poll=0.0)
    assert [read[1][0].step for read in reads if read] == [0, 1]
