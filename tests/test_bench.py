"""Before and after: what samples say, what logs say, trees, and the command from its words to its exit code."""

from __future__ import annotations

import json
import math
import os
import random
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
from collected import for_every

from ldlm_lint.bench import compare, report, samples
from ldlm_lint.bench.compare import Change
from ldlm_lint.bench.guards import only_on_cuda
from ldlm_lint.bench.losses import Agreement, losses
from ldlm_lint.bench.losses_in_words import loss_lines
from ldlm_lint.bench.notes import all_notes
from ldlm_lint.bench.rounds import failed, orders, too_small
from ldlm_lint.bench.samples import Logged, Sample
from ldlm_lint.bench.trees import AFTER, AGAIN, BEFORE
from ldlm_lint.cli import main
from ldlm_lint.evidence.model import Environment, Evidence, Run, Status
from ldlm_lint.monitor.reader import LogReader
from ldlm_lint.probe.launch import Ended

SCHEMA = json.loads((Path(__file__).parent.parent / "docs" / "bench.schema.json").read_text(encoding="utf-8"))
LOSSES = {1: 2.5, 2: 2.25, 3: 2.0}


def rounds(number: int, gain: float, noise: float, seed: int = 0, **values) -> list[Sample]:
    """Samples of rounds whose second tree takes ``1 / gain`` of the time, with lognormal noise that a round shares."""
    draw = random.Random(seed)
    found = []
    for index in range(number):
        shared = draw.lognormvariate(0, 0.3)
        for arm in (BEFORE, AGAIN, AFTER):
            seconds = 10 * shared * draw.lognormvariate(0, noise) / (gain if arm == AFTER else 1)
            found.append(Sample(arm, index, seconds, logged=Logged(LOSSES), **values))
    return found


def change_of(found: list[Sample], name: str = "whole run") -> Change:
    return next(one.change for one in compare.compared(found) if one.quantity.name == name)


def test_a_gain_that_is_larger_than_the_noise_is_seen_and_so_is_a_loss():
    assert change_of(rounds(7, 1.3, 0.02)) is Change.BETTER
    assert change_of(rounds(7, 1 / 1.3, 0.02)) is Change.WORSE


def test_equal_trees_are_not_told_apart_whatever_the_noise():
    for seed in range(100):
        for noise in (0.005, 0.05, 0.3):
            assert change_of(rounds(7, 1.0, noise, seed)) in (Change.NONE_SEEN, Change.UNCLEAR)


def test_no_difference_is_said_only_where_the_interval_is_narrow():
    assert change_of(rounds(9, 1.0, 0.005)) is Change.NONE_SEEN
    assert change_of(rounds(9, 1.0, 0.3)) is Change.UNCLEAR


def test_few_rounds_decide_nothing():
    (one,) = compare.compared(rounds(4, 3.0, 0.001))
    assert one.change is Change.UNCLEAR and "4 rounds are too few" in one.reason


def test_on_a_busy_machine_the_wall_clock_decides_nothing_and_cpu_time_does():
    found = [Sample(one.arm, one.round, one.seconds, cpu_seconds=one.seconds) for one in rounds(7, 1.3, 0.02)]
    changes = {one.quantity.name: one.change for one in compare.compared(found, busy="busy")}
    assert changes == {"whole run": Change.UNCLEAR, "CPU time": Change.BETTER}


def test_a_quantity_that_one_run_lacks_is_not_compared():
    found = rounds(5, 1.0, 0.01, memory_bytes=5.0)
    assert {one.quantity.name for one in compare.compared(found)} == {"whole run", "peak memory"}
    found[3] = Sample(found[3].arm, found[3].round, 1.0)
    assert {one.quantity.name for one in compare.compared(found)} == {"whole run"}


def test_more_throughput_is_better():
    found = [
        Sample(one.arm, one.round, 1.0, logged=Logged({}, 1000 / one.seconds, "samples_per_s"))
        for one in rounds(7, 1.3, 0.02)
    ]
    assert change_of(found, "throughput in the log") is Change.BETTER


def with_losses(before, again, after) -> list[Sample]:
    curves = {BEFORE: before, AGAIN: again, AFTER: after}
    return [Sample(arm, index, 1.0, logged=Logged(curve)) for index in range(5) for arm, curve in curves.items()]


@for_every(
    ("again", "after", "agreement"),
    [
        (LOSSES, LOSSES, Agreement.IDENTICAL),
        (LOSSES, {**LOSSES, 3: 2.00001}, Agreement.CLOSE),
        (LOSSES, {**LOSSES, 3: 2.1}, Agreement.DIFFERENT),
        ({**LOSSES, 2: 2.4}, {**LOSSES, 3: 2.1}, Agreement.WITHIN_NOISE),
        (LOSSES, {**LOSSES, 3: math.nan}, Agreement.DIFFERENT),
        (LOSSES, {7: 1.0}, Agreement.UNKNOWN),
        (LOSSES, {}, Agreement.UNKNOWN),
    ],
)
def test_losses(again, after, agreement):
    found = losses(with_losses(LOSSES, again, after))
    assert found.agreement is agreement
    assert loss_lines(found)[0].startswith("losses: ")


def until(step: int, *, bad: float = math.nan, last: int = 9) -> dict[int, float]:
    return {index: 2.0 if index < step else bad for index in range(last)}


@for_every(
    ("before", "after", "agreement", "said"),
    [
        (until(9), until(5), Agreement.DIFFERENT, "NaN from step 5 in after (4 steps)"),
        (until(9), until(5, bad=math.inf), Agreement.DIFFERENT, "inf from step 5 in after (4 steps)"),
        (
            until(5),
            until(9),
            Agreement.DIFFERENT,
            "NaN from step 5 in before (4 steps): the original tree trains to it",
        ),
        (until(7), until(5), Agreement.DIFFERENT, "NaN from step 5 in after (4 steps)"),
        (until(5), until(5), Agreement.IDENTICAL, "NaN from step 5 in both trees (4 steps)"),
        (
            until(9),
            until(9, last=6),
            Agreement.IDENTICAL,
            "3 steps with a loss in before but none in after, the first is step 6",
        ),
        (until(9, last=6), until(9), Agreement.IDENTICAL, "3 steps with a loss in after but none in before"),
    ],
)
def test_losses_that_are_not_finite_or_missing_are_counted(before, after, agreement, said):
    found = losses(with_losses(before, before, after))
    assert found.agreement is agreement
    assert any(said in line for line in loss_lines(found)) and "differ by up to inf" not in str(loss_lines(found))
    ends = report.conclusion([], found, 5)
    assert (agreement is Agreement.DIFFERENT) is ("losses differ (" in ends)


def test_too_few_rounds_are_no_absence_of_a_difference():
    found = rounds(4, 0.6, 0.01)
    ends = report.conclusion(compare.compared(found), losses(found), 4)
    assert ends == "Cannot tell: too few rounds (4, at least 5 are needed)."


def test_two_runs_that_both_end_in_nan_agree():
    nan = {**LOSSES, 3: math.nan}
    assert losses(with_losses(nan, nan, nan)).agreement is Agreement.IDENTICAL


def test_a_log_gives_one_series_of_losses_and_its_rate_without_the_warm_up():
    lines = [f"[rank0]: step {step} | loss {9 - step} | samples/s {100 + step}" for step in range(8)]
    lines += ["[rank1]: step 3 | loss 77.0 | samples/s 1", "val loss 5.5"]
    found = samples.of_records(LogReader().feed("\n".join(lines) + "\n"))
    assert found.losses == {step: float(9 - step) for step in range(8)}
    assert found.rate_key == "samples_per_s" and found.rate == pytest.approx(104.5, rel=0.001)


def test_each_round_has_every_arm_and_the_orders_differ():
    found = list(orders(20, seed=1))
    assert all(sorted(one) == sorted((BEFORE, AGAIN, AFTER)) for one in found)
    assert len({tuple(one) for one in found}) > 3


@for_every(
    ("code", "timed_out", "statuses", "expected"),
    [
        (0, False, [], False),
        (1, False, [], True),
        (0, True, [Status.STOPPED], True),
        (1, False, [Status.STOPPED, Status.STOPPED], False),
        (1, False, [Status.STOPPED, Status.CRASHED], True),
        (1, False, [Status.FINISHED], True),
    ],
)
def test_what_fails_by_itself_is_no_sample(code, timed_out, statuses, expected):
    ranks = [Evidence(Run("watch", "id", status=one), Environment()) for one in statuses]
    assert failed(Ended(code, timed_out), ranks) is expected


PROGRAM = """
import pathlib
assert not pathlib.Path("left").exists(), "a run sees what an earlier one left"
pathlib.Path("left").write_text("x")
for step in range(5):
    print(f"iter {step}: loss {2.5 - step / 10:.4f}, time 3.00ms, mfu 1.00%")
print({extra!r})
"""


@pytest.fixture
def trees(tmp_path, monkeypatch):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "train.py").write_text(PROGRAM.replace("{extra!r}", repr(name)))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def bench(*words: str) -> int:
    return main(["bench", "--before", "a", "--after", "b", *words, "--", sys.executable, "train.py"])


def test_two_trees_are_compared_and_left_alone(trees, capsys):
    assert bench("--rounds", "5", "--warmup", "0", "--json", "out.json") in (0, 1)
    shown = capsys.readouterr()
    assert "losses: identical in all printed digits at 5 common steps" in shown.out
    assert "steps were not timed" in shown.out
    values = json.loads((trees / "out.json").read_text())
    jsonschema.validate(values, SCHEMA)
    assert len(values["runs"]) == 15 and values["losses"]["agreement"] == "identical"
    assert {path.name for path in trees.rglob("*") if path.is_file()} == {"train.py", "out.json"}


def test_json_on_stdout_stands_alone(trees, capsys):
    bench("--rounds", "5", "--warmup", "0", "--json", "-")
    jsonschema.validate(json.loads(capsys.readouterr().out), SCHEMA)


def test_a_run_that_fails_ends_it_with_the_end_of_its_output(trees, capsys):
    (trees / "b" / "train.py").write_text("print('last words'); raise SystemExit(7)")
    assert bench("--rounds", "5") == 3
    error = capsys.readouterr().err
    assert "ended with exit code 7 in the second tree (after)" in error and "last words" in error


def test_a_run_that_hangs_ends_at_its_limit(trees, capsys):
    (trees / "b" / "train.py").write_text("import time\nprint('waiting', flush=True)\ntime.sleep(600)")
    assert bench("--warmup", "1", "--max-seconds", "2") == 3
    assert "still ran after" in capsys.readouterr().err


@for_every(
    ("budget", "spent", "seconds", "done", "enough"),
    [
        (32, 2, [2, 3], 0, True),
        (31, 2, [2, 3], 0, False),
        (31, 2, [1, 3], 0, True),
        (31, 25, [2, 3], 4, True),
        (31, 28, [2, 3], 4, False),
        (31, 31, [2, 3], 5, True),
    ],
)
def test_a_budget_is_too_small_if_even_the_shortest_runs_leave_too_few_rounds(budget, spent, seconds, done, enough):
    assert (too_small(budget, spent, seconds, done) == "") is enough


def test_a_budget_that_holds_no_round(trees, capsys):
    assert bench("--budget", "0.01") == 3
    assert "5 rounds of three runs are needed" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--before", "a", "--", "python", "train.py"], "must be used together"),
        (["--before", "a", "--after", "b", "--select", "ALL", "--", "python", "train.py"], "two trees without fixes"),
        (["--before", "a", "--after", "none", "--", "python", "train.py"], "none: no such folder"),
        (["--before", "a", "--after", "b", "--rounds", "4", "--", "python", "train.py"], "use at least 5"),
        (["--before", "a", "--after", "b"], "no command"),
        (["--before", "a", "--after", "b", "--", "no-such-program-here"], "command not found"),
    ],
)
def test_wrong_usage(trees, capsys, words, message):
    assert main(["bench", *words]) == 2
    assert message in capsys.readouterr().err


FIXABLE = """
import torch
from torch.utils.data import DataLoader

loader = DataLoader(data, num_workers=0, prefetch_factor=2)
"""


def test_without_a_fix_there_is_nothing_to_compare(trees, capsys):
    (trees / "pyproject.toml").write_text("")
    assert main(["bench", "--", sys.executable, "a/train.py"]) == 2
    assert "no fix to apply" in capsys.readouterr().err


def test_the_fixes_are_applied_to_the_second_copy_alone(tmp_path, monkeypatch, capsys):
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "loading.py").write_text(FIXABLE)
    (tmp_path / "train.py").write_text("print(f\"step 1: loss {len(open('loading.py').read())}\")\n")
    monkeypatch.chdir(tmp_path)
    before = (tmp_path / "loading.py").read_bytes()
    words = ["--rounds", "5", "--warmup", "0", "--json", "-", "--", sys.executable, "train.py"]
    # The printed "loss" is the length of the fixed file, so that the two trees differ.
    assert main(["bench", *words]) == 1
    values = json.loads(capsys.readouterr().out)
    assert values["fixes"] == {"dataloader-worker-options-without-workers": 1}
    assert values["losses"]["agreement"] == "different"
    assert (tmp_path / "loading.py").read_bytes() == before and not (tmp_path / ".ldlm-lint").exists()


PLAIN = "import torch\noptimizer = torch.optim.AdamW(parameters, lr=1e-3{})\nprint(1)\n"
GUARD = "fused=torch.cuda.is_available()"


@for_every(
    ("before", "after", "expected"),
    [
        (PLAIN.format(""), PLAIN.format(f", {GUARD}"), (GUARD,)),
        (PLAIN.format(""), PLAIN.format(", fused=True"), ()),
        (PLAIN.format(", fused=True"), PLAIN.format(f", {GUARD}"), ()),
        (PLAIN.format(", **more"), PLAIN.format(f", **more, {GUARD}"), ()),
        (PLAIN.format(""), PLAIN.format(f", {GUARD}").replace("print(1)", "print(2)"), ()),
        (PLAIN.format(""), PLAIN.format(", enabled=torch.cuda.is_available()"), ()),
        (PLAIN.format(""), PLAIN.format(""), ()),
        # A function of the project may have another default.
        ("import torch\nload(data)\n", "import torch\nload(data, pin_memory=torch.cuda.is_available())\n", ()),
    ],
)
def test_a_change_that_is_off_without_cuda_is_known_only_where_it_is_the_only_one(tmp_path, before, after, expected):
    for name, text in (("a", before), ("b", after)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "train.py").write_text(text)
    assert only_on_cuda(tmp_path / "a", tmp_path / "b") == expected


@pytest.mark.parametrize(("cuda", "said"), [(False, True), (True, False), (None, False)])
def test_a_change_does_nothing_only_where_the_runs_had_no_cuda(cuda, said):
    notes = all_notes([], rounds(5, 1.0, 0.01, cuda=cuda), 5, [GUARD])
    assert any("does nothing here" in note for note in notes) is said


TRAINING = """
import torch
torch.manual_seed(0)
model = torch.nn.Linear(32, 32)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3{more})
for step in range(12):
    loss = model(torch.randn(8, 32)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"iter {{step}}: loss {{loss.item():.4f}}, time 3.00ms, mfu 0.02%")
"""


def torch_has_cuda() -> bool:
    import torch

    return torch.cuda.is_available()


@pytest.mark.torch
def test_steps_are_timed_and_end_the_run(trees, capsys, monkeypatch):
    monkeypatch.setattr(compare, "FEWEST_ROUNDS", 1)  # one round shows it, and 15 runs that import torch take long
    for name, more in (("a", ""), ("b", ", fused=torch.cuda.is_available()")):
        (trees / name / "train.py").write_text(TRAINING.format(more=more))
    code = bench("--rounds", "1", "--warmup", "0", "--steps", "6", "--json", "-")
    values = json.loads(capsys.readouterr().out)
    # One round of steps that take half a millisecond may come out as worse on a busy machine.
    assert code == any(one["change"] == "worse" for one in values["comparisons"])
    assert [one["steps"] for one in values["runs"]] == [6, 6, 6]
    assert {one["quantity"] for one in values["comparisons"]} >= {"step time", "whole run", "peak memory"}
    assert any("does nothing here" in note for note in values["notes"]) is not torch_has_cuda()
    assert values["losses"]["agreement"] in ("identical", "close") and values["losses"]["steps"] >= 5


@pytest.mark.slow
def test_a_picture_is_drawn(trees):
    pytest.importorskip("matplotlib")
    assert bench("--rounds", "5", "--warmup", "0", "--plot", "out.png") in (0, 1)
    assert (trees / "out.png").read_bytes().startswith(b"\x89PNG")


def test_matplotlib_is_asked_for_where_it_is_missing(trees):
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "import importlib.util; importlib.util.find_spec = lambda name: None\n"
        "from ldlm_lint.cli import main; raise SystemExit(main(sys.argv[1:]))"
    )
    words = ["bench", "--before", "a", "--after", "b", "--plot", "x.png", "--", sys.executable, "train.py"]
    done = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, env=os.environ, check=False
    )
    assert done.returncode == 2 and 'python -m pip install ".[plot]"' in done.stderr
