"""`monitor --html`: the page of a run and of two runs compared, and that nothing of a log acts in it."""

from __future__ import annotations

import json
import os
import random
import re
import sys
from pathlib import Path

import healthy_logs
import pytest
from calling import Run
from pages import Element, checked

from ldlm_lint.monitor.advice import NEXT
from ldlm_lint.monitor.alarms import KINDS

LOGS = Path(__file__).parent / "monitor_logs"
HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>{{ 7 * 7 }}"


def run_log(rank: int, count: int = 400, *, slow: bool = False, nan_from: int = 10**9) -> str:
    draw = random.Random(rank)
    lines = []
    for step in range(count):
        loss = "nan" if step >= nan_from else f"{1.8 + 6 * (1 + step / 30) ** -0.7 + draw.gauss(0, 0.02):.4f}"
        speed = 38000 * (0.6 if slow and step > 250 else 1) + draw.gauss(0, 50)
        lines.append(f"[rank{rank}]: step: {step}/5000 | loss: {loss} | grad_norm: {0.8 + draw.random() / 10:.3f} | memory: {31 + step / 200:.2f}GiB | tokens/s: {speed:.0f}\n")
    return "".join(lines)


@pytest.fixture
def ranks(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "rank0.log").write_text(run_log(0))
    (folder / "rank1.log").write_text(run_log(1, slow=True, nan_from=390))
    return folder


def page_of(run: Run, where: Path, *words: object, code: int = 1) -> Element:
    target = where.parent / "page.html"
    assert run("monitor", where, *words, "--html", target)[0] == code
    return checked(target.read_text(encoding="utf-8"))


def identified(page: Element, name: str) -> Element:
    (found,) = page.all(id=name)
    return found


def test_every_kind_of_alarm_says_what_to_do() -> None:
    assert NEXT.keys() == KINDS.keys()
    assert all(text.endswith(".") and text.count("`") % 2 == 0 for text in NEXT.values())


def test_the_page_says_how_the_run_is_and_what_to_do_next(run: Run, ranks: Path) -> None:
    page = page_of(run, ranks)
    state = identified(page, "state")
    assert next(state.all("h2")).text == "2 alarms: 1 critical, 1 warning"
    assert "is nan now (rank 1)" in state.text and "step 0 to 399" in state.text
    tiles = {next(tile.all("dt")).text: next(tile.all("dd")).text for tile in identified(page, "tiles").all("div")}
    assert tiles["Step"] == "399 of 5,000 (7 %)" and tiles["Loss"].startswith("nan ")
    assert "Stop the run and go back to the last checkpoint" in identified(page, "next").text
    assert identified(page, "next-command").text.startswith("ldlm-lint --select clip-before-unscale,")


def test_the_curves_have_the_alarms_that_concern_them(run: Run, ranks: Path) -> None:
    page = page_of(run, ranks)
    charts = {next(figure.all("h3")).text: figure for figure in page.all("figure", kind="chart")}
    assert list(charts) == ["Loss", "Gradient norm", "Tokens per second", "Memory in GiB"]
    targets = {title: [link.attributes["href"] for link in chart.all("a", kind="marker")] for title, chart in charts.items()}
    (nan,) = (card.attributes["id"] for card in page.all("article") if "is not a number" in card.text)
    (drop,) = (card.attributes["id"] for card in page.all("article") if "Throughput drop" in card.text)
    assert targets == {"Loss": [f"#{nan}"], "Gradient norm": [], "Tokens per second": [f"#{drop}"], "Memory in GiB": []}
    loss = charts["Loss"]
    healthy, broken = (value.text for value in loss.all("b", kind="value"))
    assert 2 < float(healthy) < 3 and broken == "not a number"
    assert len(list(loss.all("rect", kind="lost-ground"))) == 1
    rows = list(next(loss.all("tbody")).all("tr"))
    assert [cell.text for cell in rows[-1].all("td")][::2] == ["399", "not a number"]
    (first, _) = [path for path in loss.all("path") if "data-xs" in path.attributes]
    assert first.attributes["data-xs"].split(",")[::399] == ["0", "399"]


def test_ranks_are_beside_each_other_and_the_slow_one_is_named(run: Run, ranks: Path) -> None:
    page = page_of(run, ranks)
    section = identified(page, "ranks")
    assert "A step of rank 1 takes 1.67 times as long" in section.text
    cells = [[cell.text for cell in row.children if isinstance(cell, Element)] for row in section.all("tr")][1:]
    assert [row[0] for row in cells] == ["rank 0", "rank 1"] and [row[4] for row in cells] == ["+0 %", "+67 %"]


def test_the_rank_that_held_the_others_up_is_marked(run: Run, tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    steps = "".join(f"[rank{rank}]: step {step} loss {3 - step / 50:.3f}\n" for step in range(40) for rank in range(4))
    hang = [line for line in (LOGS / "run-7.log").read_text().splitlines(keepends=True) if "Watchdog" in line or "last enqueued" in line]
    log.write_text(steps + "".join(hang))
    section = identified(page_of(run, log), "ranks")
    assert "rank 2 held the others up." in section.text
    assert [next(row.all("th")).text for row in section.all("tr", kind="culprit")] == ["rank 2 held the others up"]


def test_one_alarm_on_several_ranks_is_one_entry_with_one_number(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    for rank in range(8):
        (folder / f"rank{rank}.log").write_text(run_log(rank, 120, nan_from=100))
    page = page_of(run, folder)
    (card,) = page.all("article")
    assert "The same at 7 more places" in card.text and "rank7.log:101" in card.text
    (loss, *_) = page.all("figure", kind="chart")
    assert [next(link.all("text")).text for link in loss.all("a", kind="marker")] == ["1"]
    assert next(identified(page, "state").all("h2")).text == "8 alarms: 8 critical"


@pytest.mark.parametrize("trainer", sorted(healthy_logs.LOGS))
def test_a_healthy_run_has_nothing_to_do(run: Run, tmp_path: Path, trainer: str) -> None:
    log = tmp_path / "train.log"
    log.write_text(healthy_logs.log(trainer, 600))
    page = page_of(run, log, code=0)
    assert next(identified(page, "state").all("h2")).text == "No alarms"
    assert "There is nothing to do." in identified(page, "alarms").text
    assert not list(page.all(id="next")) and list(page.all("figure", kind="chart"))


def test_the_bar_of_an_evaluation_is_not_how_far_the_run_is(run: Run, tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text(healthy_logs.log("trainer", 600))
    page = page_of(run, log, code=0)
    assert next(identified(page, "tiles").all("dd")).text == "600 of 600 (100 %)"
    (_, _, speed) = page.all("figure", kind="chart")
    assert [name.text for name in speed.all("span", kind="name")] == ["iterations_per_s (it/s), bar of 600", "iterations_per_s (it/s), bar of 37"]


def test_the_page_of_a_long_log_of_many_ranks_stays_small(run: Run, tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    draw = random.Random(1)
    with log.open("w") as file:
        for step in range(2500):
            spike = 3 if step == 1777 else 1
            for rank in range(12):
                file.write(f"[rank{rank}]: step {step} loss {spike * (2 + draw.gauss(0, 0.05)):.4f} grad_norm {draw.random():.4f} tokens/s {1000 + draw.random():.1f}\n")
    target = tmp_path / "page.html"
    assert run("monitor", log, "--html", target, "--quiet")[0] == 1
    assert target.stat().st_size < 1_000_000
    (loss, *_) = checked(target.read_text()).all("figure", kind="chart")
    for path in [line for line in loss.all("path") if "data-xs" in line.attributes]:
        values = [float(value) for value in path.attributes["data-ys"].split(",")]
        assert max(values) > 5


def test_nothing_of_a_hostile_log_acts(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "a<b onclick=x>"
    folder.mkdir()
    name = "x'><svg onload=alert(3)>"
    rows = [{"step": step, "loss": 2.5 - step / 100, HOSTILE: step, f"{HOSTILE} loss": 1.0} for step in range(50)]
    (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / f"{name}.log").write_text(
        "".join(f"step {step} {HOSTILE} loss {2.5 - step / 100}\n" for step in range(50))
        + f"[rank1]: torch.OutOfMemoryError: CUDA out of memory. {HOSTILE} \u202e\n"
        + f"Traceback (most recent call last):\nValueError: {HOSTILE}\n"
    )
    page = page_of(run, folder)
    assert len(list(page.all("script"))) == 1 and not list(page.all("img"))
    assert HOSTILE in page.text and "49" not in {said.text for said in page.all("p")}
    assert "\u202e" not in page.text
    assert not list(page.all("svg", onload="alert(3)"))


def test_two_runs_are_drawn_together_with_the_place_where_they_part(run: Run, tmp_path: Path) -> None:
    for name, late in (("old", 1.0), ("new", 1.12)):
        draw = random.Random(name)
        losses = [(1.8 + 6 * (1 + step / 30) ** -0.7) * (1 + draw.gauss(0, 0.02)) * (late if step > 500 else 1) for step in range(800)]
        (tmp_path / f"{name}.log").write_text("".join(f"step: {step}/800 | loss: {'nan' if late > 1 and step > 780 else loss}\n" for step, loss in enumerate(losses)))
    target = tmp_path / "page.html"
    assert run("monitor", "--compare", tmp_path / "old.log", tmp_path / "new.log", "--html", target)[0] == 1
    page = checked(target.read_text())
    assert "A is old.log, B is new.log" in next(page.all("h1")).text
    assert identified(page, "verdict").text == "The runs differ"
    parted = re.search(r"Look at step (\d+), where the loss of the runs parts", identified(page, "next").text)
    assert parted and 495 <= int(parted[1]) <= 525
    (chart,) = page.all("figure", kind="chart")
    assert [name.text for name in chart.all("span", kind="name")] == ["A", "B", "NaN or infinite"]
    (band,) = chart.all("rect", kind="band")
    assert 62 <= float(band.attributes["x"].rstrip("%")) <= 66
    assert len(list(chart.all("rect", kind="lost-ground"))) == 1


def test_two_equal_runs_leave_nothing_to_do(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(run_log(0))
    target = tmp_path / "page.html"
    assert run("monitor", "--compare", tmp_path / "a.log", tmp_path / "a.log", "--html", target)[0] == 0
    page = checked(target.read_text())
    assert "No difference" in identified(page, "verdict").text and "Nothing:" in identified(page, "next").text


def test_a_file_that_cannot_be_written_is_said_before_the_logs_are_read(run: Run, tmp_path: Path) -> None:
    code, _, err = run("monitor", tmp_path / "no.log", "--html", tmp_path / "no" / "page.html")
    assert code == 2 and "--html" in err and "there is no directory" in err


@pytest.mark.parametrize("option", ["--html", "--json"])
def test_a_report_never_overwrites_a_log(run: Run, ranks: Path, option: str) -> None:
    log = ranks / "rank0.log"
    before = log.read_bytes()
    code, _, err = run("monitor", log, option, log)
    assert code == 2 and f"{option} {log}: the report would overwrite an input" in err
    assert run("monitor", "--compare", ranks / "rank1.log", log, option, log)[0] == 2
    assert log.read_bytes() == before


def test_a_page_can_go_to_stdout(run: Run, ranks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ranks)
    code, out, _ = run("monitor", "rank0.log", "--html", "-")
    assert code == 0 and identified(checked(out), "state")
    assert identified(checked(run("monitor", "--compare", "rank0.log", "rank1.log", "--html", "-")[1]), "verdict")
    code, _, err = run("monitor", "rank0.log", "--html", "-", "--json", "-")
    assert code == 2 and "--json - and --html - cannot share stdout" in err
    assert not (ranks / "-").exists()


@pytest.mark.skipif(os.name == "nt" or sys.platform == "darwin", reason="these systems have no such names")
def test_a_name_that_is_not_utf_8(run: Run, tmp_path: Path) -> None:
    log = tmp_path / os.fsdecode(b"bad\xff.log")
    log.write_text(run_log(0))
    page_of(run, log, "--json", tmp_path / "run.json", code=0)
    written = (tmp_path / "run.json").read_text(encoding="utf-8")
    assert r"bad\udcff.log" in written and json.loads(written)["sources"]
