"""A thing against itself, for real: each arm of each timing is replaced by the baseline, and nothing may be verified.

Twenty runs take up to half an hour; `LDLM_SAME_RUNS` is another number of them, `LDLM_SAME_BUDGET` the seconds for each
half of one. They mean most on a machine that does other work as well; ``--target cpu`` lets a CPU decide.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter

import pytest

from ldlm_lint.evidence.model import Judgement, Verdict
from ldlm_lint.probe.micro import judging
from ldlm_lint.probe.micro.experiment import Context
from ldlm_lint.probe.micro.sampling import cpu_clock, sample

TIMED = ("fused-optimizer", "precision", "attention", "activation-checkpointing", "ddp", "dataloader", "compile")


def same(seed: int, *only: str, budget: float = 60.0) -> list[dict]:
    """The verdicts of one A/A run."""
    options = [
        "--same",
        "--target",
        "cpu",
        "--device",
        "cpu",
        "--json",
        "-",
        "--seed",
        str(seed),
        "--budget",
        f"{budget:g}",
    ]
    command = [sys.executable, "-m", "ldlm_lint", "probe", "--only", *only, *options]
    found = subprocess.run(command, capture_output=True, text=True, timeout=budget + 30, check=False)
    assert found.returncode == 0, found.stderr
    return json.loads(found.stdout)["verdicts"]


def shown(verdicts: list[dict]) -> str:
    """One line for each verdict: what the samples said, and what was made of it."""
    rows = []
    for one in verdicts:
        measured = one["measured"]
        if measured is not None:
            low, high = measured["ci95"]
            said = f"{measured['metric']}: {measured['value']:.3f} [{low:.3f}, {high:.3f}], A/A {measured['noise_band']:.3f}"
            pressure = measured["detail"]["cpu_pressure"] or 0.0
            rows.append(
                f"{one['verdict']:<12} by samples {measured['detail']['by_samples']:<12} n {measured['n']:>2} "
                f"{measured['clock']:<12} pressure {pressure:>3.0f} %  {said}"
            )
    return "\n".join(rows)


def loop(length: int):
    """A call of a known cost in CPU time."""
    return lambda: lambda: sum(range(length))


@pytest.mark.slow
@pytest.mark.parametrize(("effect", "verdict", "least"), [(1.3, Verdict.VERIFIED, 9), (1.0, Verdict.VERIFIED, 0)])
def test_a_true_effect_is_seen_by_the_clock_of_the_cpu(effect, verdict, least):
    found = Counter(one.verdict for one in (measured(effect, seed) for seed in range(10)))
    print(effect, {one.value: number for one, number in found.items()})
    assert found[verdict] >= least and (least or not found[verdict])


def measured(effect: float, seed: int) -> Judgement:
    """One comparison of two loops, the way experiments do it."""
    context = Context(None, "cpu", "cpu", seed, 0.0, "")
    arms = judging.arms_of(context, {"slow": loop(int(100_000 * effect)), "fast": loop(100_000)}, "slow")
    timing = sample(arms, cpu_clock, seed=seed, end=time.monotonic() + 60)
    return judging.compared(context, "optimizer-not-fused", "claim", timing, "slow", "fast")


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(int(os.environ.get("LDLM_SAME_RUNS", "20"))))
def test_nothing_is_verified_of_a_thing_against_itself(seed):
    seconds = float(os.environ.get("LDLM_SAME_BUDGET", "50"))
    verdicts = [*same(seed, *TIMED[:4], budget=seconds), *same(seed, *TIMED[4:], budget=seconds)]
    print(f"\nrun {seed}\n{shown(verdicts)}")
    assert sum(one["measured"] is not None for one in verdicts) >= 3, "too few comparisons came about"
    assert [one for one in verdicts if one["verdict"] == "verified"] == []
