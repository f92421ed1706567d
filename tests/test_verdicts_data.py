"""What judges make of loaders, samplers, copies and checkpoint files."""

from __future__ import annotations

from typing import Any

import pytest
from collected import for_every
from watched_runs import judgements, place, rank, verdicts

IN_MAIN = "dataloader-in-main-process"
PREFETCH = "dataloader-without-prefetch"


def _quartiles(n: int, q1: float = 0, median: float = 0, q3: float = 0) -> dict[str, Any]:
    return {"n": n, "q1": q1, "median": median, "q3": q3}


def _loader(**changes: Any) -> dict[str, Any]:
    record = {
        "site": place(10),
        "num_workers": 2,
        "prefetch_factor": 2,
        "persistent_workers": False,
        "pin_memory": False,
        "iterators": 1,
        "worker_starts": 1,
        "batches": 20,
        "evaluation_batches": 0,
        "first_waits": [0.1],
        "wait_seconds": {"n": 0},
        "wait_share": {"n": 0},
        "device_starved": 0,
        "device_asked": 0,
        "local_world_size": 0,
    }
    return {"loaders": [record | changes]}


def test_a_loader_that_has_workers_refutes_that_it_has_none() -> None:
    assert verdicts(rank(_loader()))[IN_MAIN] == ("refuted", "this loader has 2 workers in 20 steps on 1 rank (cpu)")


@for_every(
    ("share", "target", "pressure", "verdict"),
    [
        (_quartiles(20, 0.3, 0.4, 0.5), "", 0, "inconclusive"),
        (_quartiles(20, 0.3, 0.4, 0.5), "cpu", 0, "verified"),
        (_quartiles(20, 0.3, 0.4, 0.5), "cpu", 60, "inconclusive"),
        (_quartiles(20, 0.001, 0.002, 0.003), "cpu", 0, "refuted"),
        (_quartiles(20, 0.01, 0.05, 0.2), "cpu", 0, "inconclusive"),
        (_quartiles(4, 0.3, 0.4, 0.5), "cpu", 0, "inconclusive"),
    ],
    ids=["no-accelerator", "waits", "busy-machine", "no-wait", "between", "few"],
)
def test_the_share_that_waits(share: dict[str, Any], target: str, pressure: float, verdict: str) -> None:
    watched = rank(_loader(num_workers=0, wait_share=share), pressure=pressure)
    assert verdicts(watched, target=target)[IN_MAIN][0] == verdict


def test_a_device_that_never_ran_dry_refutes_the_host_that_waited() -> None:
    records = _loader(wait_share=_quartiles(20, 0.3, 0.4, 0.5), device_asked=18)
    assert verdicts(rank(records, device="cuda"))[PREFETCH][0] == "refuted"


@pytest.mark.parametrize(("starved", "verdict"), [(20, "verified"), (15, "verified"), (14, "inconclusive")])
def test_a_host_that_waits_while_the_device_computes_costs_nothing(starved: int, verdict: str) -> None:
    waits = {"wait_share": _quartiles(20, 0.3, 0.4, 0.5), "device_asked": 20, "device_starved": starved}
    assert verdicts(rank(_loader(num_workers=0, **waits), device="cuda"))[IN_MAIN][0] == verdict


def _bursts(late: int, waited: float, n: int = 60, **changes: Any) -> dict[str, Any]:
    totals = {"seconds": 100.0, "waited": waited, "starved": 0.0, "late": late}
    return _loader(wait_share=_quartiles(n, 0, 0.001, 0.002), waits_in_all=totals | changes)


@for_every(
    ("records", "verdict", "says"),
    [
        (_bursts(6, 30), "verified", "6 of 60 iterations wait, 30 % of the time"),
        (_bursts(15, 30), "verified", "15 of 60"),
        # Two workers that are too slow are waited for in every second iteration.
        (_bursts(30, 70), "inconclusive", "the workers may be too slow"),
        # One in ten is late, by more than the workers could make good while the training computes.
        (_bursts(6, 60), "inconclusive", "the workers may be too slow"),
        (_loader(wait_share=_quartiles(60, 0.3, 0.4, 0.5)), "inconclusive", "not recorded"),
        (_bursts(2, 30), "inconclusive", "2 of 60"),
        (_bursts(6, 5), "inconclusive", "0 % of its time"),
        (_bursts(0, 1), "refuted", "0 % of its time"),
    ],
)
def test_a_longer_queue_helps_against_single_late_batches_only(records: Any, verdict: str, says: str) -> None:
    found, reason = verdicts(rank(records), target="cpu")[PREFETCH]
    assert (found, says in reason) == (verdict, True), reason


def test_a_late_batch_costs_a_device_only_what_it_has_nothing_to_do() -> None:
    asked = {"device_asked": 60, "device_starved": 6}
    for starved, verdict in ((30.0, "verified"), (5.0, "inconclusive")):
        records = _bursts(6, 40, starved=starved)
        records["loaders"][0] |= asked
        assert verdicts(rank(records, device="cuda"))[PREFETCH][0] == verdict


def test_quartiles_do_not_hide_a_few_long_waits() -> None:
    records = _bursts(6, 30)
    records["loaders"][0] |= {"num_workers": 0}
    assert verdicts(rank(records), target="cpu")[IN_MAIN][0] == "inconclusive"


def test_another_prefetch_factor_refutes_that_it_is_the_default() -> None:
    assert verdicts(rank(_loader(prefetch_factor=8)))[PREFETCH][0] == "refuted"


def _load(seconds: float, computed: float, waited: float) -> dict[str, float]:
    return {"seconds": seconds, "computed": computed * seconds, "waited_for_cpu": waited * seconds}


ONLY_COMPUTE, SLEEP, SOME_DISK = _load(20, 0.5, 0.48), _load(20, 0.03, 0.001), _load(20, 0.4, 0.3)


@for_every(
    ("workers", "device", "load", "pressure", "verdict"),
    [
        (6, "cuda", ONLY_COMPUTE, 0, "verified"),
        (6, "cuda", ONLY_COMPUTE, 60, "inconclusive"),
        (2, "cuda", ONLY_COMPUTE, 0, "refuted"),
        (6, "cpu", ONLY_COMPUTE, 0, "inconclusive"),
        (6, "cuda", SLEEP, 0, "refuted"),
        (6, "cuda", SLEEP, 60, "refuted"),
        (6, "cuda", SOME_DISK, 0, "inconclusive"),
        # Twelve workers of 5 % beside other programs need less than one of eight CPUs.
        (6, "cuda", _load(20, 0.005, 0.065), 60, "refuted"),
        (6, "cuda", _load(0.2, 0.5, 0.48), 0, "inconclusive"),
        (6, "cuda", None, 0, "inconclusive"),
    ],
)
def test_workers_of_all_local_ranks_beside_the_cpus(
    workers: int, device: str, load: dict[str, float] | None, pressure: float, verdict: str
) -> None:
    record = _loader(num_workers=workers, worker_load=load)
    ranks = [rank(record, number, 2, device=device, pressure=pressure) for number in range(2)]
    assert verdicts(*ranks)["dataloader-too-many-workers"][0] == verdict


def test_a_target_of_the_cpu_does_not_verify_a_count() -> None:
    for load, verdict in ((ONLY_COMPUTE, "verified"), (SLEEP, "refuted")):
        watched = rank(_loader(num_workers=6, worker_load=load), cpus=2)
        assert verdicts(watched, target="cpu")["dataloader-too-many-workers"][0] == verdict


@pytest.mark.parametrize(
    ("pageable", "pinned", "verdict"), [(9, 0, "verified"), (0, 9, "refuted"), (0, 0, "inconclusive")]
)
def test_copies_from_pageable_memory(pageable: int, pinned: int, verdict: str) -> None:
    copies = {
        "pageable": {"count": pageable, "time": 900.0 * bool(pageable)},
        "pinned": {"count": pinned, "time": 900.0 * bool(pinned)},
        "step_time": 9000,
    }
    records = _loader() | {"copies": copies}
    assert verdicts(rank(records, device="cuda"))["dataloader-without-pin-memory"][0] == verdict
    assert "dataloader-without-pin-memory" not in verdicts(rank(records))


def _sampler(epochs: list[int], calls: int = 0, *, shuffle: bool = True, learns: bool = True) -> dict[str, Any]:
    record = {
        "site": place(8),
        "class": "DistributedSampler",
        "shuffle": shuffle,
        "set_epoch_calls": calls,
        "replicas": 2,
    }
    return {"samplers": [record | {"epochs": [[epoch, learns] for epoch in epochs], "loops": [place(20)]}]}


@for_every(
    ("records", "verdict"),
    [
        (_sampler([0, 0, 0]), "verified"),
        (_sampler([0, 1, 2], 3), "refuted"),
        (_sampler([5, 5, 5], 3), "inconclusive"),
        (_sampler([0]), None),
        (_sampler([0, 0, 0], shuffle=False), None),
        (_sampler([0, 0, 0], learns=False), None),
    ],
    ids=["never", "each", "same", "one-pass", "ordered", "evaluation"],
)
def test_epochs_of_a_sampler(records: dict[str, Any], verdict: str | None) -> None:
    assert verdicts(rank(records)).get("sampler-without-set-epoch", (None,))[0] == verdict


@pytest.mark.parametrize(
    ("second", "verdict"),
    [
        # A helper makes the samplers of the training and of the evaluation at one line.
        (_sampler([0, 0], learns=False), "refuted"),
        (_sampler([0, 0]), "inconclusive"),
        (_sampler([0, 1], 2), "refuted"),
    ],
    ids=["evaluation", "never-told", "told"],
)
def test_samplers_made_at_one_line_are_told_apart(second: dict[str, Any], verdict: str) -> None:
    both = {"samplers": [*_sampler([0, 1, 2], 3)["samplers"], *second["samplers"]]}
    assert verdicts(rank(both))["sampler-without-set-epoch"][0] == verdict


def test_a_sampler_is_found_at_its_constructor_and_at_its_loop() -> None:
    assert [one.line for one in judgements(rank(_sampler([0, 0])))["sampler-without-set-epoch"].sites] == [8, 20]


def _save(path: str, order: int, *, existed: bool = False, line: int = 5) -> dict[str, Any]:
    return {
        "path": path,
        "keys": [],
        "existed": existed,
        "site": place(line),
        "bytes": 100,
        "seconds": 0.1,
        "step": order,
        "order": order,
    }


def _change(event: str, order: int, *paths: str) -> dict[str, Any]:
    return {"event": event, "paths": list(paths), "step": order, "order": order, "site": place(6)}


def _files(saves: list[dict[str, Any]], *changes: dict[str, Any], **more: Any) -> dict[str, Any]:
    record = {"saves": saves, "changes": list(changes), "loads": [], "missing": [], "limits": [], "may_remove": []}
    record["may_limit"] = []
    return {"checkpoint_files": record | more}


NUMBERED = [_save(f"/out/step{number}.pt", number) for number in range(6)]


@for_every(
    ("records", "verdict"),
    [
        (_files(NUMBERED), "verified"),
        (_files(NUMBERED[:3]), "inconclusive"),
        (_files(NUMBERED, _change("os.remove", 9, "/out/step0.pt")), "refuted"),
        (_files(NUMBERED, _change("shutil.rmtree", 9, "/out")), "refuted"),
        (_files([_save("/out/last.pt", number, existed=number > 0) for number in range(6)]), "refuted"),
        (_files(NUMBERED[:1]), None),
    ],
    ids=["all-kept", "few", "one-removed", "folder-removed", "one-file", "one-save"],
)
def test_files_that_pile_up(records: dict[str, Any], verdict: str | None) -> None:
    assert verdicts(rank(records)).get("unbounded-checkpoints", (None,))[0] == verdict


def test_new_names_behind_a_renaming_pile_up_as_well() -> None:
    saves = [_save("/out/new.tmp", 2 * number) for number in range(6)]
    moves = [_change("os.rename", 2 * number + 1, "/out/new.tmp", f"/out/step{number}.pt") for number in range(6)]
    found = verdicts(rank(_files(saves, *moves)))
    assert found["unbounded-checkpoints"][0] == "verified" and found["non-atomic-checkpoint"][0] == "refuted"


def test_a_backup_of_the_last_file_is_no_pile() -> None:
    saves = [_save("/out/last.pt", 2 * number) for number in range(6)]
    moves = [_change("os.rename", 2 * number + 1, "/out/last.pt", "/out/last.pt.bak") for number in range(6)]
    assert verdicts(rank(_files(saves, *moves)))["unbounded-checkpoints"][0] == "refuted"


def test_a_save_over_the_last_file_is_in_place() -> None:
    records = _files([_save("/out/last.pt", 0), _save("/out/last.pt", 1, existed=True)])
    assert verdicts(rank(records))["non-atomic-checkpoint"][0] == "verified"


def test_a_save_beside_the_last_file_is_not() -> None:
    saves = [_save("/out/last.pt.part", 2 * number) for number in range(3)]
    moves = [_change("os.rename", 2 * number + 1, "/out/last.pt.part", "/out/last.pt") for number in range(3)]
    assert verdicts(rank(_files(saves, *moves)))["non-atomic-checkpoint"][0] == "refuted"


def test_a_new_file_each_time_is_neither() -> None:
    assert "non-atomic-checkpoint" not in verdicts(rank(_files(NUMBERED)))


def test_a_path_that_two_ranks_write() -> None:
    rule = "checkpoint-saved-by-every-rank"
    both = [rank(_files([_save("/out/last.pt", 0)]), number, 2) for number in range(2)]
    own = [rank(_files([_save(f"/out/last{number}.pt", 0)]), number, 2) for number in range(2)]
    assert verdicts(*both)[rule][0] == "verified"
    assert verdicts(*own)[rule][0] == "refuted"
    assert verdicts(both[0], rank({"models": []}, 1, 2))[rule][0] == "refuted"
    assert rule not in verdicts(both[0])


def test_a_file_that_another_rank_has_just_written_was_not_written_over_in_place() -> None:
    rule = "non-atomic-checkpoint"
    shared = [rank(_files([_save("/out/last.pt", 0, existed=number > 0)]), number, 2) for number in range(2)]
    assert rule not in verdicts(*shared)
    own = [
        rank(_files([_save(f"/out/{number}.pt", 0), _save(f"/out/{number}.pt", 1, existed=True)]), number, 2)
        for number in range(2)
    ]
    assert verdicts(*own)[rule][0] == "verified"


def test_two_hosts_do_not_write_one_local_file() -> None:
    ranks = [rank(_files([_save("/tmp/last.pt", 0)]), number, 2, host=str(number)) for number in range(2)]
    assert verdicts(*ranks)["checkpoint-saved-by-every-rank"][0] == "refuted"


def test_removal_before_replacement_stands_at_the_removal() -> None:
    rule = "checkpoint-removed-before-replacement"
    saves = [_save("/out/last.pt", 0), _save("/out/last.pt", 2)]
    found = judgements(rank(_files(saves, _change("os.remove", 1, "/out/last.pt"))))[rule]
    assert found.verdict.value == "verified" and found.sites[0].line == 6
    other = [_save("/out/best.pt", 0, line=4), *saves[1:]]
    assert rule not in verdicts(rank(_files([saves[0], *other], _change("os.remove", 1, "/out/last.pt"))))


def test_a_removal_after_the_replacement_is_a_rotation() -> None:
    saves = [_save("/out/a.pt", 0), _save("/out/b.pt", 1)]
    found = verdicts(rank(_files(saves, _change("os.remove", 2, "/out/a.pt"))))
    assert "checkpoint-removed-before-replacement" not in found
