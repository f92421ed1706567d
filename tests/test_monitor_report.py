"""What the command prints and returns, and its JSON against the published schema."""

from __future__ import annotations

import io
import json
import random
import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from ldlm_lint.cli import main

SCHEMA = Draft202012Validator(
    json.loads((Path(__file__).parents[1] / "docs" / "monitor.schema.json").read_text("utf-8"))
)


def log(count: int = 300, **changes: float) -> str:
    """A nanoGPT log; ``nan_from`` and ``slow_from`` are iterations."""
    draw = random.Random(4)
    lines = []
    for step in range(count):
        loss = 2 + 8 * (1 + step / 10) ** -0.5 + draw.gauss(0, 0.03)
        text = "nan" if step >= changes.get("nan_from", 1e9) else f"{loss:.4f}"
        time = 65 * (1.5 if step >= changes.get("slow_from", 1e9) else 1) + draw.gauss(0, 1)
        lines.append(f"iter {step}: loss {text}, time {time:.2f}ms, mfu 0.02%")
    return "\n".join(lines) + "\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "train.log"


def test_a_clean_log(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path.write_text(log())
    assert main(["monitor", str(path)]) == 0
    out = capsys.readouterr().out
    assert "No alarms; 300 records in 1 source." in out
    assert re.search(r"loss \[train\] +300 +10\.\d+ +3\.\d+ +\S+ +\S+ +█", out)


def test_alarms_carry_place_numbers_and_rules(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path.write_text(log(nan_from=250, slow_from=200))
    assert main(["monitor", str(path)]) == 1
    out = capsys.readouterr().out
    assert "critical nan-loss  train.log:251 (step 250)" in out
    assert "finite until step 249" in out and "seen 50 times, the last time at step 299" in out
    assert "warning throughput-drop  train.log:" in out and "-33% speed" in out
    assert "ldlm-lint explain clip-before-unscale" in out
    assert "2 alarms (1 critical, 1 warning); 300 records in 1 source." in out


def test_fail_on_and_quiet(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path.write_text(log(slow_from=200))
    assert main(["monitor", str(path), "--fail-on", "critical", "--quiet"]) == 0
    assert "trend" not in capsys.readouterr().out


@pytest.mark.parametrize("changes", [{}, {"nan_from": 250}])
def test_json_is_after_the_schema(path: Path, changes: dict[str, float], capsys: pytest.CaptureFixture[str]) -> None:
    path.write_text(log(**changes))
    assert main(["monitor", str(path), "--json", "-"]) == len(changes)
    out = capsys.readouterr()
    document = json.loads(out.out, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    SCHEMA.validate(document)
    loss = next(one for one in document["series"] if one["key"] == "loss")
    assert (loss["count"], loss["nonfinite"]) == ((300, 0) if not changes else (250, 50))
    assert [one["kind"] for one in document["alarms"]] == ["nan-loss"] * len(changes)


def test_json_to_a_file_leaves_the_report_on_stdout(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path.write_text(log())
    assert main(["monitor", str(path), "--json", str(tmp_path / "out.json")]) == 0
    SCHEMA.validate(json.loads((tmp_path / "out.json").read_text()))
    assert "No alarms" in capsys.readouterr().out


def test_events_alone_are_a_report(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path.write_text("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n")
    assert main(["monitor", str(path)]) == 1
    assert "critical oom  train.log:1" in capsys.readouterr().out


def test_a_terminal_gets_no_escapes_of_the_log(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path.write_text("RuntimeError: CUDA error: out of memory \x07\x1b]0;title\x07\u202e\n")
    assert main(["monitor", str(path)]) == 1
    assert not set("\x07\x1b\u202e") & set(capsys.readouterr().out)


def test_a_folder_says_the_same_trouble_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"step": step, "loss": 2.0 + step % 5 / 100 if step < 60 else float("nan")} for step in range(1, 80)]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "train.log").write_text("".join(f"step: {row['step']} loss: {row['loss']}\n" for row in rows))
    assert main(["monitor", str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert "158 records in 2 sources" in out and out.count("nan-loss") == 1


def test_stdin(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(log(nan_from=290).encode())))
    assert main(["monitor", "-"]) == 1
    assert "stdin:291" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    [[], ["--compare", "a", "b", "c"], ["log", "--rank", "-1"], ["log", "--silence", "0"], ["log", "--fail-on", "x"]],
)
def test_wrong_usage(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["monitor", *words]) == 2
    assert "error:" in capsys.readouterr().err


def test_what_cannot_be_read_or_understood(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["monitor", str(tmp_path / "gone.log")]) == 3
    assert main(["monitor", str(tmp_path)]) == 3
    (tmp_path / "words.txt").write_text("a text about nothing\nno loss was had\n")
    assert main(["monitor", str(tmp_path / "words.txt")]) == 3
    out = capsys.readouterr()
    assert "no metric and no known error found in 2 lines" in out.err and "No alarms" not in out.out


def test_a_source_that_cannot_be_read_is_not_called_healthy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "train.log").write_text(log())
    (tmp_path / "trainer_state.json").write_text('{"log_hist')
    assert main(["monitor", str(tmp_path)]) == 3
    out = capsys.readouterr()
    assert "trainer_state.json" in out.err and "No alarms; 300 records" in out.out


def test_the_session_in_the_docs_is_what_the_command_prints(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = Path(__file__).parents[1]
    monkeypatch.chdir(root)
    monkeypatch.setenv("COLUMNS", "120")
    text = (root / "docs" / "monitor.md").read_text("utf-8")
    (session,) = re.findall(r"^```console\n\$ ldlm-lint ([^\n]*)\n(.*?)^```$", text, re.M | re.S)
    assert main(session[0].split()) == 1
    shown = "\n".join(line.rstrip() for line in capsys.readouterr().out.splitlines())
    assert shown.strip("\n") == session[1].strip("\n")


def test_the_docs_name_every_alarm_of_a_series() -> None:
    from ldlm_lint.monitor.alarms import KINDS

    text = (Path(__file__).parents[1] / "docs" / "monitor.md").read_text("utf-8")
    named = set(re.findall(r"^\| `([a-z-]+)` \|", text, re.M))
    series = list(KINDS)[: list(KINDS).index("oom")]
    assert named == set(series)
