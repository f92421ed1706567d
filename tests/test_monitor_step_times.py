"""Times of steps under names that could mean anything, and columns that are not read."""

from __future__ import annotations

import random

import pytest
from collected import for_every

from ldlm_lint.cli import main
from ldlm_lint.monitor.health import Health
from ldlm_lint.monitor.reader import LogReader


def log(form: str, seconds: float = 0.2, count: int = 200, seed: int = 0, spread: float = 0.05) -> str:
    draw = random.Random(seed)
    lines, total = [], 0.0
    for step in range(count):
        time = seconds * (1 + abs(draw.gauss(0, spread)))
        total += time
        values = {"t": time, "ms": 1000 * time, "total": total, "left": 1000 - total, "any": draw.random() * 5}
        lines.append(form.format(i=step, l=3 - step / 100 + draw.gauss(0, 0.01), **values))
    return "\n".join(lines) + "\n"


def keys(text: str, size: int = 0) -> set[str]:
    health, reader = Health(), LogReader()
    chunks = [text] if not size else [text[at : at + size] for at in range(0, len(text), size)]
    for chunk in chunks:
        for line, records in reader.read(chunk):
            health.take("a.log", line, records)
        if size:
            health.poll()
    health.close()
    return {one.key.named.key or one.key.named.raw for one in health.series}


TIMES = (
    "step {i} loss {l:.4f} time {t:.3f}s",
    "step {i} loss {l:.4f} ({t:.3f}s)",
    "step {i} | loss {l:.4f} | t {t:.4f}",
    "step {i} loss {l:.4f} dt {t:.4f}",
    "step {i} loss {l:.4f} dt {ms:.1f}ms",
    "step {i} loss {l:.4f} took {t:.4f}",
    "epoch 1 step {i}: loss={l:.4f} elapsed={t:.3f} s",
)
OTHERS = (
    # Since the start, to the end, of a part of the step.
    ("step {i} loss {l:.4f} time {total:.2f}s", "time"),
    ("step {i} loss {l:.4f} elapsed {total:.3f}", "elapsed"),
    ("step {i} loss {l:.4f} rest {left:.2f}s", "rest"),
    ("step {i} loss {l:.4f} fetch {t:.3f}s", "fetch"),
    # Not a time: a parameter between 0 and 5, a count.
    ("step {i} loss {l:.4f} t {any:.3f}", "t"),
    ("step {i} loss {l:.4f} foo {t:.3f}", "foo"),
    # A setting; the time of an epoch.
    ("step {i} loss {l:.4f} t 0.7", "t"),
    ("epoch {i} loss {l:.4f} took {t:.3f}s", "took"),
    # Milliseconds or seconds.
    ("step {i} loss {l:.4f} dt {ms:.1f}", "dt"),
    # Which of them is the step's is open.
    ("step {i} loss {l:.4f} first {t:.3f}s second {t:.3f}s", "first"),
)


@for_every("size", [0, 120])
@for_every("form", TIMES)
def test_a_column_that_behaves_like_the_time_of_a_step(form: str, size: int) -> None:
    assert keys(log(form), size) == {"loss", "step_time_s"}


@for_every(("form", "name"), OTHERS)
def test_a_column_that_is_no_time_of_a_step(form: str, name: str) -> None:
    found = keys(log(form))
    assert name in found and "step_time_s" not in found


def test_a_line_that_prints_its_speed_needs_no_other() -> None:
    assert "t" in keys(log("step {i} loss {l:.4f} t {t:.3f} step_time {t:.3f}"))


def test_a_time_that_grows_is_an_alarm() -> None:
    health, reader = Health(), LogReader()
    form = "step {i} loss {l:.4f} ({t:.3f}s)"
    text = log(form, count=300, spread=0.01) + log(form.replace("{i}", "3{i:03d}"), 0.4, count=200, seed=1, spread=0.01)
    for line, records in reader.read(text):
        health.take("a.log", line, records)
    health.close()
    assert "throughput-drop" in {alarm.kind for alarm in health.book.alarms}


@pytest.mark.parametrize("form", TIMES)
def test_runs_that_differ_in_such_a_column_differ(form: str, tmp_path, capsys) -> None:
    for name, seconds in (("a", 0.2), ("b", 0.26), ("c", 0.2)):
        (tmp_path / f"{name}.log").write_text(log(form, seconds, seed=ord(name)))
    assert main(["monitor", "--compare", str(tmp_path / "a.log"), str(tmp_path / "b.log")]) == 1
    assert "times as long in B" in capsys.readouterr().out
    assert main(["monitor", "--compare", str(tmp_path / "a.log"), str(tmp_path / "c.log")]) == 0
    assert "No difference between the runs was seen." in capsys.readouterr().out


def test_a_column_that_is_not_read_is_named(tmp_path, capsys) -> None:
    for name, seconds in (("a", 0.2), ("b", 0.26)):
        (tmp_path / f"{name}.log").write_text(log("step {i} loss {l:.4f} foo {t:.3f}", seconds))
    assert main(["monitor", str(tmp_path / "a.log")]) == 0
    assert "and 1 more series: `foo` (not read as a known quantity" in capsys.readouterr().out
    assert main(["monitor", "--compare", str(tmp_path / "a.log"), str(tmp_path / "b.log")]) == 0
    said = capsys.readouterr().out
    assert "No difference between the runs" not in said
    assert "not compared, since it is not a known quantity: `foo`" in said
