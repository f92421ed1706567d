"""What judges make of DDP, its process groups and the environment."""

from __future__ import annotations

from typing import Any

import pytest
from collected import for_every
from watched_runs import judgements, place, rank, verdicts

UNUSED = "ddp-find-unused-parameters"
ACCUMULATION = "accumulation-without-no-sync"


def _ddp(**changes: Any) -> dict[str, Any]:
    flags = {"find_unused_parameters": False, "gradient_as_bucket_view": False, "static_graph": False}
    record = {
        "site": place(30),
        "class": "Net",
        "flags": flags | changes.pop("flags", {}),
        "compiled": False,
        "parameters": 8,
        "gradient_bytes": 0,
        "gradients": {},
        "buffers": {},
        "backward_sites": [place(40), place(50)],
        "backwards": [],
        "checked_iterations": 0,
        "unused": {},
        "unused_count": 0,
        "frozen_after_wrap": [],
        "all_reduces_in_profiled_step": None,
        "reducer": {},
    }
    return {"ddp": [record | changes]}


def _searching(iterations: int = 20, **changes: Any) -> dict[str, Any]:
    return _ddp(flags={"find_unused_parameters": True}, checked_iterations=iterations, **changes)


def test_a_flag_that_no_rank_needs_is_verified_and_lifts() -> None:
    found = judgements(rank(_searching(50), 0, 2, steps=50), rank(_searching(50), 1, 2, steps=50))[UNUSED]
    assert (found.verdict.value, found.lifts) == ("verified", True)
    assert found.reason == "no unused parameter seen in 50 steps on 2 ranks (cpu)"
    assert found.sites[0].line == 30


def test_one_rank_alone_leaves_open_what_other_ranks_use() -> None:
    found = judgements(rank(_searching()))[UNUSED]
    assert (found.verdict.value, found.lifts, found.settled_by) == ("inconclusive", False, "ranks")


def test_a_rank_without_evidence_leaves_it_open() -> None:
    verdict, reason = verdicts(rank(_searching(), 0, 2))[UNUSED]
    assert verdict == "inconclusive" and "some ranks left no evidence" in reason


def test_a_rank_that_wraps_elsewhere_leaves_it_open() -> None:
    verdict, _ = verdicts(rank(_searching(), 0, 2), rank({"models": []}, 1, 2))[UNUSED]
    assert verdict == "inconclusive"


def test_one_rank_that_leaves_a_parameter_out_refutes() -> None:
    second = _searching(unused={"head.weight": 3}, unused_count=1)
    verdict, reason = verdicts(rank(_searching(), 0, 2), rank(second, 1, 2))[UNUSED]
    assert verdict == "refuted" and "head.weight" in reason and "on rank 1" in reason


@pytest.mark.parametrize(
    "changes", [{"compiled": True}, {"reducer": {"unused_parameter_size": 4}}, {"iterations": 2}], ids=str
)
def test_what_was_not_watched_enough_is_left_open(changes: dict[str, Any]) -> None:
    assert verdicts(rank(_searching(**changes), 0, 2), rank(_searching(), 1, 2))[UNUSED][0] == "inconclusive"


def test_a_wrapper_without_the_flag_is_not_judged_for_it() -> None:
    assert UNUSED not in verdicts(rank(_ddp()))


@for_every(
    ("step", "verdict"),
    [
        ([[0, True]] * 4, "verified"),
        ([[0, False]] * 3 + [[0, True]], "refuted"),
        ([[0, False]] * 3 + [[1, True]], "refuted"),
        ([[0, True]], "inconclusive"),
        ([[0, True], [1, True]], "inconclusive"),
        ([[0, True], [0, False], [0, True]], "inconclusive"),
    ],
    ids=["all", "last", "last-elsewhere", "one", "two-losses", "some"],
)
def test_reductions_of_an_accumulation(step: list[list[Any]], verdict: str) -> None:
    assert verdicts(rank(_ddp(backwards=[step] * 6)))[ACCUMULATION][0] == verdict


def test_accumulation_stands_at_its_backward_pass() -> None:
    found = judgements(rank(_ddp(backwards=[[[1, True]] * 2] * 6)))[ACCUMULATION]
    assert [one.line for one in found.sites] == [50, 30]
    assert found.measured is not None and found.measured.value == 2


def test_a_static_graph_could_not_do_otherwise() -> None:
    records = _ddp(flags={"static_graph": True}, backwards=[[[0, True]] * 2] * 6)
    assert verdicts(rank(records))[ACCUMULATION][0] == "inconclusive"


def test_ranks_that_differ_are_left_open() -> None:
    first, second = _ddp(backwards=[[[0, True]] * 2] * 6), _ddp(backwards=[[[0, False], [0, True]]] * 6)
    assert verdicts(rank(first, 0, 2), rank(second, 1, 2))[ACCUMULATION][0] == "inconclusive"


@pytest.mark.parametrize(
    ("view", "stores", "size", "verdict"),
    [
        (False, 8, 1 << 24, "verified"),
        (True, 2, 1 << 24, "refuted"),
        (False, 8, 100, "inconclusive"),
        (True, 8, 1 << 24, "inconclusive"),
    ],
)
def test_gradients_held_twice(view: bool, stores: int, size: int, verdict: str) -> None:
    gradients = {"count": 8, "stores": stores}
    records = _ddp(flags={"gradient_as_bucket_view": view}, gradients=gradients, gradient_bytes=size)
    assert verdicts(rank(records))["ddp-gradient-copy"][0] == verdict


def test_buffers_that_differ_are_named_and_equal_ones_say_nothing() -> None:
    first, second = _ddp(buffers={"noise": "1 2", "scale": "3 4"}), _ddp(buffers={"noise": "1 3", "scale": "3 4"})
    verdict, reason = verdicts(rank(first, 0, 2), rank(second, 1, 2))["ddp-broadcast-buffers"]
    assert verdict == "verified" and reason.startswith("noise not the same")
    assert "ddp-broadcast-buffers" not in verdicts(rank(first, 0, 2), rank(first, 1, 2))


def test_freezing_a_part_after_wrapping_is_seen_and_freezing_a_whole_network_is_none() -> None:
    rule = "parameters-frozen-after-wrap"
    assert verdicts(rank(_ddp(frozen_after_wrap=["encoder.weight"])))[rule][0] == "verified"
    assert rule not in verdicts(rank(_ddp(frozen_after_wrap=[str(one) for one in range(8)])))


def _group(
    line: int, seconds: float, *, default: bool = False, backend: str = "gloo", usual: float | None = 1800
) -> dict[str, Any]:
    timeouts = {"cpu": {"backend": backend, "seconds": seconds, "default": usual}}
    return {
        "site": place(line),
        "default": default,
        "name": str(line),
        "timeouts_at_construction": timeouts,
        "timeouts": timeouts,
    }


def _groups(*groups: dict[str, Any], **environment: str) -> dict[str, Any]:
    return {"process_groups": {"environment": environment, "groups": list(groups)}}


@pytest.mark.parametrize(
    ("seconds", "excessive", "invalid"),
    [(99, "refuted", "refuted"), (10800, "verified", "refuted"), (5, "refuted", "verified")],
)
def test_a_timeout_is_judged_by_what_the_group_holds(seconds: float, excessive: str, invalid: str) -> None:
    found = verdicts(rank(_groups(_group(3, seconds, default=True))))
    assert found["excessive-collective-timeout"][0] == excessive
    assert found["invalid-collective-timeout"][0] == invalid


def test_a_default_timeout_says_nothing_of_what_the_call_passes() -> None:
    assert verdicts(rank(_groups(_group(3, 1800, default=True)))) == {}


@pytest.mark.parametrize(("seconds", "verdict"), [(1800, "verified"), (99, "refuted"), (60, None)])
def test_a_sub_group_beside_a_default_group_with_a_timeout(seconds: float, verdict: str | None) -> None:
    found = verdicts(
        rank(_groups(_group(3, 99, default=True), _group(4, seconds)))
        if seconds == 1800
        else rank(_groups(_group(4, seconds), {**_group(3, 99, default=True), "site": None}))
    )
    assert found.get("subgroup-timeout-not-inherited", (None,))[0] == verdict


@pytest.mark.parametrize(
    ("backend", "device", "verdict"),
    [("nccl", "cuda", "verified"), ("gloo", "cpu", "inconclusive"), ("gloo", "cuda", "inconclusive")],
)
def test_variables_of_nccl_need_nccl(backend: str, device: str, verdict: str) -> None:
    records = _groups(_group(3, 600, default=True, backend=backend, usual=600), TORCH_NCCL_BLOCKING_WAIT="1")
    assert verdicts(rank(records, device=device))["nccl-blocking-wait"][0] == verdict


def test_variables_at_good_values_are_silent() -> None:
    records = _groups(
        _group(3, 600, default=True, backend="nccl", usual=600), TORCH_NCCL_BLOCKING_WAIT="0", NCCL_DEBUG="WARN"
    )
    assert verdicts(rank(records, device="cuda")) == {}
