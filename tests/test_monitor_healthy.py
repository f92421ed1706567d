"""Healthy logs of eight trainers raise no alarm, evaluation in between or not; the same logs with a fault do."""

from __future__ import annotations

import pytest
from collected import for_every
from healthy_logs import LOGS, SIZES, log
from test_monitor_events import health

from ldlm_lint.monitor.alarms import Alarm

# What the format cannot tell: two bars of one total and no name are one series, a named part of a loss is not the loss.
BLIND = {("trainer_numbers", "slow"), ("yolo", "spike")}


def alarms(name: str, size: int, fault: str = "", seed: int = 0) -> list[Alarm]:
    return health(log(name, size, fault, seed)).book.alarms


@for_every("size", SIZES)
@for_every("name", LOGS)
def test_a_healthy_log_raises_no_alarm(name: str, size: int) -> None:
    for seed in range(3 if size < max(SIZES) else 1):
        assert [(one.kind, one.message, one.line) for one in alarms(name, size, seed=seed)] == []


@for_every("size", SIZES)
@for_every("name", LOGS)
def test_nan_in_it_is_noticed(name: str, size: int) -> None:
    assert "nan-loss" in {one.kind for one in alarms(name, size, "nan")}


@for_every(("fault", "kind"), [("slow", "throughput-drop"), ("spike", "loss-spike")])
@for_every("name", LOGS)
def test_a_fault_in_it_is_noticed(name: str, fault: str, kind: str) -> None:
    if (name, fault) not in BLIND:
        assert {one.kind for one in alarms(name, 600, fault)} == {kind}


def test_bars_are_told_apart_by_description_and_total() -> None:
    text = "".join(
        f"\r 10%|█         | {step}/90 [00:10<01:30, 10.00it/s]\r 10%|█         | {step}/30 [00:10<01:30, 80.00it/s]"
        f"\rTrain: 10%|█         | {step}/30 [00:10<01:30, 20.00it/s]"
        for step in range(1, 31)
    )
    series = [one for one in health(text + "\n").series if one.key.named.key == "iterations_per_s"]
    assert sorted((one.curve.count, one.curve.low, one.curve.high) for one in series) == [
        (30, 10.0, 10.0),
        (30, 20.0, 20.0),
        (30, 80.0, 80.0),
    ]


def test_an_epoch_that_is_a_little_longer_is_the_same_bar() -> None:
    text = "".join(
        f"\rEpoch {epoch}: 10%|█         | {step}/{total} [00:10<01:30, 10.00it/s, loss={2.0 + step:.3f}]"
        for epoch, total in enumerate((100, 104, 30, 97))
        for step in range(1, 25)
    )
    assert sorted(one.curve.count for one in health(text + "\n").series if one.key.named.key == "loss") == [24, 72]


def test_a_bar_has_no_date() -> None:
    text = "".join(f"\rEpoch 0/2 ━━━━ {step}/31 0:00:{step:02d} • 0:00:20 3.20it/s loss: 0.5" for step in range(1, 12))
    judged = health(text + "\n")
    assert {one.time for one in judged.sources["train.log"].processes[None, ""].pending} <= {None}


@pytest.mark.parametrize("seconds", [2, 60])
def test_a_bar_of_fast_steps_that_are_slow_for_a_moment_is_no_slower_run(seconds: int) -> None:
    """A bar is drawn ten times a second; ten such readings are one second of one machine."""
    shown, step = [], 0.0
    for tenth in range(1200):
        rate = 30.0 if 600 <= tenth < 600 + 10 * seconds else 60.0
        step += rate / 10
        shown.append(f"\r 10%|█         | {int(step)}/9000 [00:10<01:30, {rate + tenth % 3:.2f}it/s]")
    found = [one.kind for one in health("".join(shown) + "\n").book.alarms]
    assert found == (["throughput-drop"] if seconds > 10 else [])
