"""What judges make of recomputed blocks, segments and parameters that are frozen and unfrozen."""

from __future__ import annotations

from typing import Any

import pytest
from collected import for_every
from watched_runs import judgements, place, rank, verdicts

MISSING = "missing-activation-checkpointing"


def _stack(**changes: Any) -> dict[str, Any]:
    stack = {
        "name": "blocks",
        "block": "Block",
        "count": 12,
        "attends": True,
        "called": 12,
        "recomputed": 0,
        "owner": "GPT",
    }
    return stack | {"site": place(50), "forward": place(60), "construction": place(90)} | changes


def _model(*stacks: dict[str, Any], **changes: Any) -> dict[str, Any]:
    model = {"class": "GPT", "site": place(50), "construction": place(90), "compiled": False, "switches": []}
    return model | {"stacks": list(stacks) or [_stack()]} | changes


def _seen(model: dict[str, Any], *segments: dict[str, Any], recomputed: dict[str, int] | None = None) -> dict[str, Any]:
    record = {
        "steps": 3,
        "recomputed": recomputed or {},
        "segments": list(segments),
        "peak": {"cpu_profile_bytes": 4096},
    }
    return {"models": [model], "activation_checkpointing": record}


def _segment(**changes: Any) -> dict[str, Any]:
    segment = {"site": place(70), "reentrant": False, "calls": 36, "recomputations": 36, "inputs_without_gradient": 0}
    counts = {"steps_without_gradients": 0, "steps_with_gradients": 3, "modules": ["Block"], "widest": {}}
    return segment | counts | changes


@for_every(
    ("records", "verdict"),
    [
        (_seen(_model()), "verified"),
        (_seen(_model(_stack(recomputed=12)), recomputed={"Block": 36}), "refuted"),
        (_seen(_model(_stack(recomputed=6)), recomputed={"Block": 18}), "refuted"),
        (_seen(_model(_stack(called=0), compiled=True)), "inconclusive"),
        (_seen(_model(switches=["gradient_checkpointing"])), "inconclusive"),
        (_seen(_model(), _segment()), "inconclusive"),
        (_seen(_model(), recomputed={"Other": 3}), "inconclusive"),
        (_seen(_model(_stack(called=0))), None),
    ],
    ids=["none", "all", "half", "compiled", "switch", "functions", "others", "never-called"],
)
def test_blocks_that_run_again(records: dict[str, Any], verdict: str | None) -> None:
    assert verdicts(rank(records)).get(MISSING, (None,))[0] == verdict


def test_the_places_are_those_that_the_finding_may_have() -> None:
    found = judgements(rank(_seen(_model())))[MISSING]
    assert [one.line for one in found.sites] == [50, 90, 60]
    assert found.reason.endswith("in 3 observed steps on 1 rank (cpu)")
    assert found.measured is not None and found.measured.value == 4096


def test_a_stack_of_a_library_stands_where_the_project_builds_it() -> None:
    model = _model(_stack(site=None, forward=None, construction=place(91)), site=None)
    assert [one.line for one in judgements(rank(_seen(model)))[MISSING].sites] == [91, 90]


def test_ranks_that_differ_are_left_open() -> None:
    plain, thrifty = _seen(_model()), _seen(_model(_stack(recomputed=12)), recomputed={"Block": 36})
    verdict, reason = verdicts(rank(plain, 0, 2), rank(thrifty, 1, 2))[MISSING]
    assert verdict == "inconclusive" and "the ranks differ" in reason


@pytest.mark.parametrize(("blocks", "verdict"), [(12, "verified"), (1, "refuted"), (9, "inconclusive")])
def test_blocks_of_one_segment(blocks: int, verdict: str) -> None:
    records = _seen(_model(_stack(recomputed=12)), _segment(widest={"blocks": blocks}), recomputed={"Block": 36})
    assert verdicts(rank(records))["whole-model-checkpoint"][0] == verdict


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({"inputs_without_gradient": 36, "steps_without_gradients": 3, "steps_with_gradients": 0}, "verified"),
        ({}, "refuted"),
        ({"inputs_without_gradient": 36}, None),
        ({"inputs_without_gradient": 12, "steps_without_gradients": 1, "steps_with_gradients": 2}, None),
    ],
    ids=["starved", "fed", "gradients-from-elsewhere", "sometimes"],
)
def test_reentrant_segments_without_inputs_that_need_gradients(changes: dict[str, Any], verdict: str | None) -> None:
    records = _seen(_model(), _segment(reentrant=True, **changes))
    assert verdicts(rank(records)).get("reentrant-checkpoint-misuse", (None,))[0] == verdict


def test_the_other_implementation_is_not_judged_for_it() -> None:
    assert "reentrant-checkpoint-misuse" not in verdicts(rank(_seen(_model(), _segment())))


@pytest.mark.parametrize(("changes", "verdict"), [(9, "verified"), (1, None), (0, None)])
def test_parameters_that_are_frozen_and_unfrozen(changes: int, verdict: str | None) -> None:
    record = {
        "class": "Net",
        "site": place(5),
        "construction": None,
        "steps": 10,
        "without_gradient": {},
        "without_gradient_count": 0,
    }
    records = {
        "parameters": [record | {"changes_of_trainable": changes, "changed": ["text.weight"] if changes else []}]
    }
    assert verdicts(rank(records)).get("requires-grad-toggled-per-step", (None,))[0] == verdict
