"""The picture of a run: what is drawn where, as data, and that matplotlib draws it."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
from collected import for_every
from training_logs import template

from ldlm_lint.cli import main
from ldlm_lint.monitor import sources
from ldlm_lint.monitor.alarms import Level
from ldlm_lint.monitor.health import Health
from ldlm_lint.monitor.picture import Panel, Picture, picture
from ldlm_lint.monitor.records import Record
from ldlm_lint.monitor.trace import Trace

LOSS = template(["loss"])


def traced(values: list[float], capacity: int = 16) -> Trace:
    trace = Trace(capacity)
    records = [Record(step + 1, None, "", LOSS, step, None, (value,)) for step, value in enumerate(values)]
    for start in range(0, len(values), 64):
        trace.extend(values[start : start + 64], records[start : start + 64])
    return trace


@for_every("count", [1, 15, 16, 17, 64, 1000, 5003])
def test_a_trace_keeps_every_spike_and_every_nan(count: int) -> None:
    values = [2.0 + (step % 7) / 100 for step in range(count)]
    spikes = {count // 3: 90.0, count // 2: -5.0, count - 1: 70.0}
    for step, value in spikes.items():
        values[step] = value
    lost = {count // 5, count // 5 + 1} - set(spikes) if count > 15 else set()
    for step in lost:
        values[step] = math.nan
    trace = traced(values)
    points = {one.step: one.value for one in trace.points()}
    assert len(trace.stretches) <= 16 and trace.count == count
    assert all(points[step] == values[step] for step in spikes)
    assert [one.index for one in trace.points()] == sorted(one.index for one in trace.points())
    assert {one.step for pair in trace.lost() for one in pair} == lost
    assert trace.latest == values[-1]


def test_nan_from_here_to_there_is_one_stretch_and_the_last_value_is_nan() -> None:
    trace = traced([1.0] * 300 + [math.nan] * 100)
    ((first, last),) = trace.lost()
    assert (first.step, last.step, math.isnan(trace.latest)) == (300, 399, True)


def of(tmp_path: Path, **logs: str) -> Picture | None:
    for name, text in logs.items():
        (tmp_path / f"{name}.log").write_text(text)
    health = Health()
    for one in sources.find(str(tmp_path)):
        for read in sources.read(one):
            if read is not None:
                health.take(one.name, *read)
    health.close()
    return picture(health)


def iterations(count: int = 200, nan_from: int = 10**9, slow_from: int = 10**9) -> str:
    lines = []
    for step in range(count):
        loss = "nan" if step >= nan_from else f"{8 / (1 + step / 50) + step % 7 / 50:.4f}"
        time = 65 * (2 if step >= slow_from else 1) + step % 3
        lines.append(f"iter {step}: loss {loss}, time {time:.2f}ms, mfu 0.02%\n")
        if step % 50 == 0:
            lines.append(f"step {step}: train loss 2.5000, val loss 2.6000\n")
    return "".join(lines)


def panels(made: Picture) -> dict[str, Panel]:
    return {one.title: one for one in made.panels}


def test_panels_courses_and_marks(tmp_path: Path) -> None:
    made = of(tmp_path, train=iterations(nan_from=180, slow_from=120))
    assert made is not None and made.unit == "step" and list(panels(made)) == ["loss", "seconds per step"]
    loss = panels(made)["loss"].courses
    assert [one.label for one in loss] == ["loss [train]", "loss (train loss) [train]", "val"]
    assert loss[0].lost == ((180.0, 199.0),) and loss[2].points[1] == (50.0, 2.6)
    assert [(one.number, one.x, one.kind, one.level) for one in made.marks] == [
        (1, 120.0, "throughput-drop", Level.WARNING),
        (2, 180.0, "nan-loss", Level.CRITICAL),
    ]
    assert made.title == "train.log: 2 alarms (1 critical, 1 warning)"


@pytest.mark.parametrize(("unit", "title", "last"), [("GiB", "memory in GiB", 32.5), ("GB", "memory in GB, as the log says it", 32.5), ("MiB", "memory in GiB", 32.5 / 1024)])
def test_memory_has_a_panel_in_the_unit_that_is_certain(tmp_path: Path, unit: str, title: str, last: float) -> None:
    made = of(tmp_path, train="".join(f"step: {step} | loss: {3 - step / 50:.3f} | memory: {(30 + step / 8):.2f}{unit}\n" for step in range(21)))
    assert made is not None and list(panels(made)) == ["loss", title]
    assert panels(made)[title].courses[0].points[-1] == pytest.approx((20.0, last)) and panels(made)[title].from_zero


def test_a_gap_is_left_where_values_are_lost_and_where_the_run_went_back(tmp_path: Path) -> None:
    rows = [*range(100), *range(60, 120)]
    text = "".join(f"iter {step}: loss {'nan' if 20 <= step < 30 else 2.5 + step % 5}, time 1ms\n" for step in rows)
    made = of(tmp_path, train=text)
    assert made is not None and made.unit == "step"
    points = panels(made)["loss"].courses[0].points
    gaps = [x for x, y in points if math.isnan(y)]
    assert gaps == [30.0, 60.0]


@pytest.mark.parametrize(
    ("line", "unit", "last"),
    [
        ("Epoch {e} step {s}/50 loss {y}", "epoch", 3 + 49 / 50),
        ("[{s}/50] loss {y}", "step (summed over epochs)", 3 * 50 + 49),
        ("loss: {y}", "record", 199),
        ("{{'loss': {y}, 'learning_rate': 1e-4, 'epoch': {f}}}", "epoch", 3.98),
    ],
)
def test_what_the_axis_counts(tmp_path: Path, line: str, unit: str, last: float) -> None:
    rows = [(e, s) for e in range(4) for s in range(50)]
    texts = [line.format(e=e, s=s, y=3 - e / 4 - s % 5 / 50, f=round(e + s / 50, 2)) for e, s in rows]
    made = of(tmp_path, train="\n".join(texts) + "\n")
    assert made is not None and made.unit == unit
    points = panels(made)["loss"].courses[0].points
    assert points[0][0] == 0 and points[-1][0] == pytest.approx(last)
    assert [x for x, _ in points] == sorted(x for x, _ in points)


def test_a_validation_without_step_is_where_the_log_has_it(tmp_path: Path) -> None:
    lines = []
    for epoch in range(4):
        lines += [f"Epoch {epoch} step {step}/50 loss {3 - epoch / 4:.3f}\n" for step in range(50)]
        lines += [f"epoch {epoch} val_loss {2.9 - epoch / 4:.3f}\n"]
    made = of(tmp_path, train="".join(lines))
    assert made is not None
    val = panels(made)["loss"].courses[-1]
    assert val.label == "val" and [x for x, _ in val.points] == [pytest.approx(e + 0.98) for e in range(4)]


def test_a_rank_with_an_alarm_has_room(tmp_path: Path) -> None:
    rows = [(step, rank) for step in range(100) for rank in range(12)]
    speeds = [(step, rank, 500 if rank == 11 and step > 60 else 1000 + step % 3) for step, rank in rows]
    made = of(tmp_path, train="".join(f"[rank{r}]: step {s} loss 2.{s % 7} tokens/s {v}\n" for s, r, v in speeds))
    assert made is not None
    speed = panels(made)["tokens per second"]
    assert (speed.courses[0].label, speed.courses[-1].label, speed.left) == ("rank 0", "rank 11", 2)
    assert [one.text.split(":")[0] for one in made.marks] == ["step 61, rank 11"]


def test_the_steps_of_an_evaluation_bar_are_not_the_axis(tmp_path: Path) -> None:
    lines = []
    for step in range(1, 41):
        lines.append(f"{{'loss': {4 - step / 20:.3f}, 'learning_rate': 1e-4, 'epoch': {step / 10}}}\n")
        lines.append(f"{step * 100 // 40}%|###   | {step}/40 [00:03<00:10, 12.5it/s]\n")
        if step % 10 == 0:
            lines += [f"{count * 10}%|###   | {count}/10 [00:00<00:01, 99.5it/s]\n" for count in range(1, 11)]
            lines.append(f"{{'eval_loss': {4 - step / 20:.3f}, 'epoch': {step / 10}}}\n")
    made = of(tmp_path, train="".join(lines))
    assert made is not None and made.unit == "epoch"
    train, val = panels(made)["loss"].courses
    assert [x for x, _ in train.points] == [step / 10 for step in range(1, 41)]
    assert [x for x, _ in val.points] == [1.0, 2.0, 3.0, 4.0]


def test_ranks_are_courses_and_an_event_without_step_is_at_its_line(tmp_path: Path) -> None:
    lines = [
        f"[rank{rank}]: step {step} loss {3 + rank - step / 100:.3f}\n" for step in range(60) for rank in range(12)
    ]
    lines.insert(30 * 12, "[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n")
    made = of(tmp_path, train="".join(lines))
    assert made is not None
    loss = panels(made)["loss"]
    assert [one.label for one in loss.courses][:2] == ["rank 0", "rank 1"] and (len(loss.courses), loss.left) == (10, 2)
    assert [(one.kind, one.x) for one in made.marks] == [("oom", 29.0)]


def test_several_logs_are_told_apart_and_the_one_with_nan_has_room(tmp_path: Path) -> None:
    logs = {f"rank{rank}": "".join(f"step {s} loss {3 - s / 50:.3f}\n" for s in range(60)) for rank in range(10, 22)}
    logs["rank21"] += "step 60 loss nan\n"
    made = of(tmp_path, **logs)
    assert made is not None and made.title == "12 logs: 1 alarm (1 critical, 0 warning)"
    loss = panels(made)["loss"]
    assert [one.label for one in loss.courses][::9] == ["rank10.log", "rank21.log"] and loss.left == 2
    assert [one.text.split(":")[0] for one in made.marks] == ["rank21.log, step 60"]


def test_a_source_that_counts_otherwise_is_left_out_and_said(tmp_path: Path) -> None:
    rows = "".join(json.dumps({"step": step, "loss": 2.5 - step / 100}) + "\n" for step in range(50))
    (tmp_path / "log.jsonl").write_text(rows)
    made = of(tmp_path, print="".join(f"loss: {2.5 - step / 100}\n" for step in range(50)))
    assert made is not None and made.unit == "step" and [len(one.courses) for one in made.panels] == [1]
    assert made.notes == ("print.log is not drawn: its x axis is record, not step",)


@pytest.mark.parametrize(("low", "logarithmic"), [(0.01, True), (-0.01, False), (1.0, False)])
def test_a_panel_is_logarithmic_where_that_is_sensible(tmp_path: Path, low: float, logarithmic: bool) -> None:
    made = of(tmp_path, train="".join(f"step {step} loss {low if step > 9 else 5.0}\n" for step in range(60)))
    assert made is not None and made.panels[0].logarithmic is logarithmic


def test_nothing_to_draw(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    log = tmp_path / "train.log"
    log.write_text("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n")
    assert main(["monitor", str(log), "--plot", str(tmp_path / "x.png")]) == 3
    out = capsys.readouterr()
    assert "critical oom" in out.out and "no loss, gradient norm or throughput was read" in out.err


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_the_file_is_drawn(tmp_path: Path, suffix: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    log, out = tmp_path / "_a$b^.log", tmp_path / f"out.{suffix}"
    log.write_text(iterations(nan_from=180) + "RuntimeError: CUDA error: $x^ \u6f22 \x07\n")
    assert main(["monitor", str(log), "--plot", str(out)]) == 1
    data = out.read_bytes()
    assert data.startswith({"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[suffix])
    if suffix == "png":
        assert (int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")) == (1000, 700)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["x.log", "--plot", "out.jpg"], "one of .png, .svg, .pdf"),
        (["x.log", "--plot", "no/folder/out.png"], "there is no directory"),
        (["--compare", "a", "b", "--plot", "out.png"], "cannot be combined with --compare"),
    ],
)
def test_what_is_refused_at_the_start(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    assert main(["monitor", *words]) == 2
    assert said in capsys.readouterr().err


def test_matplotlib_is_asked_for_where_it_is_missing() -> None:
    code = "import sys; sys.modules['matplotlib'] = None\nfrom ldlm_lint.cli import main\nsys.exit(main(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", code, "monitor", "x.log", "--plot", "x.png"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2 and 'python -m pip install ".[plot]"' in done.stderr
