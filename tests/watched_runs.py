"""Evidence written by hand, for tests of what judges make of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ldlm_lint.evidence.model import Environment, Evidence, Judgement, Run, Status
from ldlm_lint.evidence.verdicts import judge


def place(line: int, path: str = "train.py") -> dict[str, Any]:
    """A site as an observer writes it."""
    return {"path": path, "line": line, "end_line": line, "sha256": "ab", "function": "main"}


def rank(
    observations: Mapping[str, Any],
    number: int = 0,
    world_size: int = 1,
    *,
    device: str = "cpu",
    steps: int = 20,
    host: str = "here",
    cpus: float = 8,
    pressure: float = 0,
) -> Evidence:
    """One process of a watched run."""
    run = Run(
        "watch",
        "1",
        root="/project",
        rank=number,
        world_size=world_size,
        pid=number,
        host=host,
        status=Status.STOPPED,
        steps=steps,
    )
    environment = Environment(device=device, cpus=cpus, cpu_pressure=pressure)
    return Evidence(run, environment, dict(observations))


def verdicts(*ranks: Evidence, target: str = "") -> dict[str, tuple[str, str]]:
    """Verdict and reason by rule."""
    return {rule: (one.verdict.value, one.reason) for rule, one in judgements(*ranks, target=target).items()}


def judgements(*ranks: Evidence, target: str = "") -> dict[str, Judgement]:
    """The judgements by rule; a rule that is judged at several places fails."""
    found = judge(ranks, target)
    assert len({one.rule for one in found}) == len(found), [one.rule for one in found]
    return {one.rule: one for one in found}
