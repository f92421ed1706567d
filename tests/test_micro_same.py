"""A thing against itself, for real: each arm of each timing is replaced by the baseline, and nothing may be verified.

Twenty runs take up to half an hour; `LDLM_SAME_RUNS` is another number of them. They mean most
on a machine that does other work as well, and with ``--target cpu``, where the device decides nothing.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

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


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(int(os.environ.get("LDLM_SAME_RUNS", "20"))))
def test_nothing_is_verified_of_a_thing_against_itself(seed):
    verdicts = [*same(seed, *TIMED[:4], budget=50.0), *same(seed, *TIMED[4:], budget=50.0)]
    print(f"\nrun {seed}\n{shown(verdicts)}")
    assert sum(one["measured"] is not None for one in verdicts) >= 3, "too few comparisons came about"
    assert [one for one in verdicts if one["verdict"] == "verified"] == []
