"""Two runs beside each other: a difference is called one only where it is more than a run differs from itself."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from training_logs import Row, judged

from ldlm_lint.cli import main
from ldlm_lint.evidence.model import Verdict
from ldlm_lint.monitor.compare import Comparison, compare


def run(seed: int, *, speed: float = 1.0, loss: float = 1.0, count: int = 800, start: int = 0) -> list[Row]:
    draw = random.Random(seed)
    return [
        {
            "step": step,
            "loss": loss * (2 + 8 * (1 + step / 10) ** -0.5) * (1 + draw.gauss(0, 0.02)),
            "tokens_per_s": 12000 * speed * (1 + draw.gauss(0, 0.04)),
        }
        for step in range(start, start + count)
    ]


def compared(first: list[Row], second: list[Row]) -> dict[str, Comparison]:
    return {one.key: one for one in compare(judged(first, broken=True), judged(second, broken=True)).quantities}


def test_a_run_is_the_same_as_itself() -> None:
    found = compared(run(1), run(1))
    assert found["loss"].same and found["loss"].verdict is Verdict.REFUTED
    assert found["tokens_per_s"].verdict is Verdict.REFUTED


def test_pairs_of_equal_runs_give_no_difference() -> None:
    for seed in range(10):
        found = compared(run(seed), run(100 + seed))
        assert not any(one.verdict is Verdict.VERIFIED for one in found.values()), seed


@pytest.mark.parametrize("speed", [0.8, 1.3])
def test_another_speed_is_seen_and_the_loss_is_not_touched(speed: float) -> None:
    found = compared(run(1), run(2, speed=speed))
    rate = found["tokens_per_s"]
    assert rate.verdict is Verdict.VERIFIED and rate.ratio is not None
    assert rate.ratio.low <= speed <= rate.ratio.high or abs(rate.ratio.value - speed) < 0.02
    assert found["loss"].verdict is not Verdict.VERIFIED


def test_another_loss_is_seen() -> None:
    assert compared(run(1), run(2, loss=1.06))["loss"].verdict is Verdict.VERIFIED


def test_only_common_steps_are_compared() -> None:
    found = compared(run(1), run(2, start=400))
    assert found["loss"].steps == 400
    assert compared(run(1), run(2, start=2000))["loss"].reason == "no step in common"


def test_few_steps_decide_nothing() -> None:
    found = compared(run(1, count=12), run(2, count=12, speed=0.5))
    assert found["tokens_per_s"].verdict is Verdict.INCONCLUSIVE and "too few" in found["tokens_per_s"].reason


def write(path: Path, rows: list[Row]) -> str:
    path.write_text(
        "".join(f"step={row['step']}, loss={row['loss']:.4f}, tokens_per_sec={row['tokens_per_s']:.1f}\n" for row in rows)
    )
    return str(path)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b, slow = (
        write(tmp_path / name, rows)
        for name, rows in (("a.log", run(1)), ("b.log", run(2)), ("s.log", run(3, speed=0.7)))
    )
    assert main(["monitor", "--compare", a, b]) == 0
    assert "no difference seen" in capsys.readouterr().out
    assert main(["monitor", "--compare", a, slow, "--json", "-"]) == 1
    document = json.loads(capsys.readouterr().out)
    schema = json.loads((Path(__file__).parents[1] / "docs" / "monitor.schema.json").read_text("utf-8"))
    Draft202012Validator(schema).validate(document)
    assert {one["key"]: one["differ"] for one in document["compared"]}["tokens_per_s"] == "verified"
    (tmp_path / "words.log").write_text("nothing here\n")
    assert main(["monitor", "--compare", a, str(tmp_path / "words.log")]) == 3
