"""Starting the workers of a loader again is only verified where it was measured to cost something."""

from __future__ import annotations

from typing import Any

import pytest
from collected import for_every
from watched_runs import judgements, place, rank, verdicts

RULE = "dataloader-without-persistent-workers"


def _quartiles(n: int, q1: float = 0, median: float = 0, q3: float = 0) -> dict[str, Any]:
    return {"n": n, "q1": q1, "median": median, "q3": q3}


def _pass(processes: float, first: float, seconds: float | None, batch: float | None = 0.1, **changes: Any) -> dict:
    times = {"process_seconds": processes, "iter_seconds": processes + 0.01, "first_wait": first}
    return times | {"batch_at_most": batch, "seconds": seconds, "profiled": False} | changes


def _loader(passes: list[dict[str, Any]], waits: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    record = {
        "site": place(10),
        "num_workers": 2,
        "prefetch_factor": 8,
        "persistent_workers": False,
        "pin_memory": False,
        "iterators": len(passes),
        "worker_starts": len(passes),
        "batches": 20 * len(passes),
        "evaluation_batches": 0,
        "first_waits": [one["first_wait"] for one in passes],
        "passes": passes,
        "wait_seconds": waits or _quartiles(40, 0.001, 0.002, 0.004),
        "wait_share": {"n": 0},
        "device_starved": 0,
        "device_asked": 0,
        "local_world_size": 0,
        "iterable": False,
    }
    return {"loaders": [record | changes]}


SLOW = _pass(0.02, 1.1, 10.0)
CHEAP = _pass(0.02, 0.03, 10.0)


@for_every(
    ("passes", "changes", "target", "verdict", "said"),
    [
        ([SLOW] * 6, {}, "cpu", "verified", "at least 1.02 s of each later iteration, 10.2 % of its 10 s"),
        ([SLOW] * 6, {}, "", "verified", "10.2 %"),
        ([SLOW] * 5, {}, "cpu", "inconclusive", "only 4 later iterations could be timed, 5 are needed"),
        ([SLOW] * 6 + [_pass(0.02, 1.1, None)], {}, "cpu", "verified", "5 iterations"),
        ([SLOW] * 5 + [SLOW | {"profiled": True}], {}, "cpu", "inconclusive", "only 4 later iterations"),
        # The first batch is as late as a batch takes: persistent workers would have to make it as well.
        ([_pass(0.02, 1.0, 10.0, batch=1.0)] * 6, {}, "cpu", "inconclusive", "at least 0.2 %"),
        ([_pass(0.02, 1.0, 10.0)] * 6, {"iterable": True}, "cpu", "inconclusive", "at least 0.2 %"),
        # The other batches of a loader that is too slow come no sooner than the first.
        ([SLOW] * 6, {"wait_seconds": _quartiles(40, 1.0, 1.1, 1.2)}, "cpu", "inconclusive", "at most"),
        ([CHEAP] * 6, {}, "cpu", "refuted", "at most 58 ms of each later iteration, 0.6 % of its 10 s"),
        ([CHEAP] * 6, {}, "", "inconclusive", "0.6 %"),
        # next(iter(loader)) in every step.
        ([_pass(0.05, 0.2, 0.4, batch=None)] * 30, {"wait_seconds": {"n": 0}}, "cpu", "verified", "12.5 %"),
        ([SLOW] + [CHEAP, SLOW] * 4, {}, "cpu", "inconclusive", "quartiles"),
        ([SLOW] * 6, {"persistent_workers": True, "worker_starts": 1}, "", "refuted", "started 1 time for 6"),
        ([SLOW], {}, "", "inconclusive", "iterated once"),
        ([SLOW], {"persistent_workers": True}, "", "inconclusive", "persistent"),
    ],
)
def test_what_restarts_cost_decides(passes, changes, target, verdict, said) -> None:
    found, reason = verdicts(rank(_loader(passes, **changes)), target=target)[RULE]
    assert (found, said in reason) == (verdict, True), reason


def test_a_machine_that_is_busy_tells_nothing_but_the_figure() -> None:
    watched = rank(_loader([SLOW] * 6), pressure=60)
    assert verdicts(watched)[RULE][0] == "inconclusive"
    assert "10.2 %" in verdicts(watched)[RULE][1] and "CPU pressure 60 %" in verdicts(watched)[RULE][1]


def test_evidence_of_an_older_probe_settles_no_cost() -> None:
    records = _loader([SLOW] * 6)
    del records["loaders"][0]["passes"]
    verdict, reason = verdicts(rank(records))[RULE]
    assert verdict == "inconclusive" and "not measured" in reason


def test_few_iterations_of_several_ranks_are_few() -> None:
    ranks = [rank(_loader([SLOW] * 4), number, 2) for number in range(2)]
    assert "only 3 later iterations" in verdicts(*ranks)[RULE][1]
    assert verdicts(*[rank(_loader([SLOW] * 6), number, 2) for number in range(2)])[RULE][0] == "verified"


def test_the_figure_is_the_time_of_an_iteration() -> None:
    measured = judgements(rank(_loader([SLOW] * 6)))[RULE].measured
    assert measured is not None and measured.value == pytest.approx(1.02) and measured.unit == "s an iteration"
    assert measured.n == 5 and measured.detail["share_at_least"] == pytest.approx(0.102)


def test_a_persistent_loader_hides_no_other_of_its_place() -> None:
    other = _loader([SLOW] * 6, persistent_workers=True, worker_starts=1)
    records = {"loaders": [*other["loaders"], *_loader([SLOW] * 6)["loaders"]]}
    assert verdicts(rank(records))[RULE][0] == "verified"


def test_a_loader_without_workers_restarts_none() -> None:
    assert RULE not in verdicts(rank(_loader([SLOW] * 6, num_workers=0)))
