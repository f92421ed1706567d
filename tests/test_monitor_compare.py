"""Two runs beside each other: a difference is called one only where it is more than a run differs from itself."""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from collected import for_every
from jsonschema import Draft202012Validator
from training_logs import CLEAN, Row, judged

from ldlm_lint.cli import main
from ldlm_lint.evidence.model import Verdict
from ldlm_lint.monitor.compare import CAPACITY, Compared, Comparison, compare


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


def both(first: list[Row], second: list[Row]) -> Compared:
    return compare(*(judged(rows, broken=True, capacity=CAPACITY) for rows in (first, second)))


def compared(first: list[Row], second: list[Row]) -> dict[str, Comparison]:
    return {one.key: one for one in both(first, second).quantities}


def reasons(found: Compared) -> str:
    return "\n".join([*(one.text for one in found.remarks), *(one.reason for one in found.quantities)])


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


def _nan(row: Row, step: int) -> None:
    if step >= 400:
        row["loss"] = math.nan


def _nan_once(row: Row, step: int) -> None:
    if step == 123:
        row["loss"] = math.nan


def _late(row: Row, step: int) -> None:
    row["loss"] *= 1.01 ** max(0, step - 500)


def _at_the_end(row: Row, step: int) -> None:
    row["loss"] *= 1.5 if step >= 570 else 1


def _half_speed(row: Row, step: int) -> None:
    row["tokens_per_s"] /= 2 if step >= 400 else 1


def _slow_for_a_while(row: Row, step: int) -> None:
    row["tokens_per_s"] /= 3 if 250 <= step < 330 else 1


def _one_pause(row: Row, step: int) -> None:
    row["tokens_per_s"] /= 600 if step == 300 else 1


CHANGES = [
    (_nan, r"B has NaN from step 400 \(200 of 600 records\); A has none"),
    (_nan_once, r"B has NaN first at step 123 \(1 of 600 records\); A has none"),
    (_late, r"in the last "),
    (_at_the_end, r"in the last 5 % .*B's loss is 1\.[45]\d times A's"),
    (_half_speed, r"in the last third \((step 39\d|step 40\d) to 599\)"),
    (_half_speed, r"B has 0.50 times A's tokens per second \("),
    (_slow_for_a_while, r"B has 0.3[34] times A's tokens per second \("),
    (_one_pause, r"all steps together take (1.9|2).* times as long in B"),
]


@for_every(("change", "text"), CHANGES)
@for_every("seed", [1, 2])
def test_what_happens_in_a_part_of_the_run_is_a_difference(
    change: Callable[[Row, int], None], text: str, seed: int
) -> None:
    """The rest of the runs is equal (seed 1) or differs by noise only (seed 2)."""
    a, b = run(1, count=600), run(seed, count=600)
    for row in b:
        change(row, int(row["step"]))
    found = both(a, b)
    assert found.differ and re.search(text, reasons(found)), reasons(found)


def test_what_is_equal_besides_nan_is_said_to_be() -> None:
    bad = run(1, count=600)
    for row in bad[400:]:
        row["loss"] = math.nan
    loss = compared(run(1, count=600), bad)["loss"]
    assert not loss.same and loss.verdict is Verdict.VERIFIED
    assert loss.reason.endswith("A has none; equal in every digit at the other 400 steps")
    good = compared(run(1, count=600), run(1, count=600))["loss"]
    assert loss.last and good.last, "the table does not hide that B has no number at its end"
    assert math.isclose(loss.last[0], good.last[0], rel_tol=0.01) and math.isnan(loss.last[1])


def test_nan_in_both_is_no_difference() -> None:
    a, b = run(1, count=600), run(1, count=600)
    for rows in (a, b):
        for row in rows[400:]:
            row["loss"] = math.nan
    found = both(a, b)
    assert not found.differ and "both have NaN from step 400 (200 of 600 records)" in reasons(found)
    assert found.quantities[0].same and found.quantities[0].nonfinite == (200, 200)


def test_a_run_of_nothing_but_nan_differs() -> None:
    bad = run(2, count=600)
    for row in bad:
        row["loss"] = math.nan
    found = both(run(1, count=600), bad)
    assert found.differ and "B has NaN from step 0 (600 of 600 records); A has none" in reasons(found)


def test_a_run_that_ended_early_differs() -> None:
    found = both(run(1, count=601), run(2, count=413))
    assert found.differ and "B ends at step 412, A at step 600" in reasons(found)
    assert not both(run(1, count=600), run(2, count=599)).differ


def test_missing_steps_are_counted() -> None:
    found = both(run(1, count=600), [row for row in run(2, count=600) if not 200 <= row["step"] < 250])
    assert found.differ and "B has no record at 50 of the 600 steps that A has: step 200 to 249" in reasons(found)
    # A line or two that got lost is worth a note.
    found = both(run(1, count=600), [row for row in run(2, count=600) if row["step"] != 200])
    assert not found.differ and "1 of the 600 steps that A has: step 200" in reasons(found)


def test_other_intervals_and_shifted_steps_are_aligned_by_stretches() -> None:
    a, b = run(1), run(2)
    every, shifted = b[::7], [{**row, "step": row["step"] + 5} for row in b[::10]]
    for other, text in ((every, "A has a record every 1 steps, B every 7: 115 steps"), (shifted, "steps in common")):
        found = both(a, other)
        assert not found.differ and text in reasons(found)
    found = both(a[::10], shifted)
    assert not found.differ and "none in common" in reasons(found) and "over 40 stretches" in reasons(found)
    slow = [{**row, "tokens_per_s": row["tokens_per_s"] / 2} for row in shifted]
    assert both(a[::10], slow).differ


def test_epochs_whose_steps_begin_anew_are_not_mixed() -> None:
    def epochs(seed: int, late: float = 1.0) -> list[Row]:
        return [
            {
                **row,
                "step": index % 200,
                "epoch": index // 200,
                "loss": row["loss"] * (late if 200 <= index < 400 else 1),
            }
            for index, row in enumerate(run(seed))
        ]

    assert not both(epochs(1), epochs(2)).differ
    found = both(epochs(1), epochs(2, 1.3))
    assert found.differ and "(pass 2, step " in reasons(found)


def test_a_loss_around_zero_is_compared_by_its_spread() -> None:
    def around(seed: int, late: float) -> list[Row]:
        draw = random.Random(seed)
        return [{"step": step, "loss": draw.gauss(0, 0.1) + (late if step >= 400 else 0)} for step in range(600)]

    assert not both(around(1, 0), around(2, 0)).differ
    found = both(around(1, 0), around(2, 0.3))
    assert found.differ and "in the last third (step" in reasons(found) and "B's loss is higher" in reasons(found)


class Program(random.Random):
    """What a program is drawn with (``uniform``, ``choice``, ``randrange``) is the same for both runs, the noise is not."""

    def __init__(self, program: int, noise: int) -> None:
        super().__init__(noise)
        self.program = random.Random(program)

    def uniform(self, a: float, b: float) -> float:
        return self.program.uniform(a, b)

    def choice(self, seq: Any) -> Any:
        return self.program.choice(seq)

    def randrange(self, *bounds: Any) -> int:
        return self.program.randrange(*bounds)


def drifting(draw: random.Random, count: int = 1500) -> list[Row]:
    """A shared machine: speed and loss wander for a hundred steps, one step in 200 takes 12 times as long."""
    rows: list[Row] = []
    speed = level = 0.0
    for step in range(count):
        speed, level = 0.99 * speed + draw.gauss(0, 0.0042), 0.975 * level + draw.gauss(0, 0.0044)
        stalls = 12 if draw.random() < 0.005 else 1
        loss = (1.5 + 6 * math.exp(-step / 200)) * math.exp(level + draw.gauss(0, 0.05))
        rows.append({"step": step, "loss": loss, "step_time_s": 0.3 * stalls * math.exp(speed + draw.gauss(0, 0.05))})
    return rows


def clocked(draw: random.Random, count: int = 3000) -> list[Row]:
    """A bar that is drawn by the clock: each run prints other steps."""
    return [
        {
            "step": step,
            "loss": (1.5 + 6 * math.exp(-step / 200)) * math.exp(draw.gauss(0, 0.08)),
            "iterations_per_s": 9 * math.exp(draw.gauss(0, 0.1)),
        }
        for step in range(count)
        if draw.random() < 0.3
    ]


SAME = {**CLEAN, "drifting": drifting, "clocked": clocked}


def differing(kind: str, seeds: range) -> list[str]:
    """What is said to differ in pairs of runs of one program."""
    pairs = ([SAME[kind](Program(seed, seed + more)) for more in (1000, 5000)] for seed in seeds)
    return [reasons(found) for found in (both(a, b) for a, b in pairs) if found.differ]


@for_every("kind", SAME)
def test_two_runs_of_one_program_do_not_differ(kind: str) -> None:
    assert differing(kind, range(1)) == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", SAME)
def test_of_40_pairs_of_runs_of_one_program_none_differs(kind: str) -> None:
    assert differing(kind, range(40)) == []


def write(path: Path, rows: list[Row]) -> str:
    path.write_text(
        "".join(
            f"step={row['step']}, loss={row['loss']:.4f}, tokens_per_sec={row['tokens_per_s']:.1f}\n" for row in rows
        )
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
    bad = write(
        tmp_path / "nan.log", [{**row, "loss": math.nan if row["step"] >= 400 else row["loss"]} for row in run(1)]
    )
    assert main(["monitor", "--compare", a, bad]) == 1
    assert "B has NaN from step 400 (400 of 800 records); A has none" in capsys.readouterr().out
    (tmp_path / "words.log").write_text("nothing here\n")
    assert main(["monitor", "--compare", a, str(tmp_path / "words.log")]) == 3
