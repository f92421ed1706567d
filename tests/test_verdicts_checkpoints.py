"""Checkpoints, not files, pile up: what is one checkpoint, what is one series, and which rotation had its chance."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from collected import for_every
from watched_runs import judgements, place, rank, verdicts

from ldlm_lint.evidence.model import Evidence
from ldlm_lint.python.skim import Skim

RULE = "unbounded-checkpoints"
TRAINER = ("model.safetensors", "optimizer.pt", "scheduler.pt", "rng_state.pth", "training_args.bin")
SHARDS = tuple(f"model-0000{number}-of-00003.safetensors" for number in (1, 2, 3))
NO_LIMIT = {
    **{"name": "save_total_limit", "value": None, "owner": "transformers.training_args.TrainingArguments"},
    "library": "transformers",
}
LIMIT_2, LIMIT_20 = NO_LIMIT | {"value": 2}, NO_LIMIT | {"value": 20}
OWN_LIMIT = {"name": "max_to_keep", "value": 7, "owner": "dict", "library": ""}


def _saved(paths: Iterable[tuple[int, str]], by: tuple[str, ...] = (), existed: bool = False) -> list[dict[str, Any]]:
    """Saves of files at steps, as an observer writes them."""
    return [
        {"path": f"/out/{path}", "keys": [], "existed": existed, "site": place(5), "by": list(by)}
        | {"bytes": 100, "seconds": 0.1, "step": step, "order": order}
        for order, (step, path) in enumerate(paths)
    ]


def _each(steps: Iterable[int], *names: str) -> list[tuple[int, str]]:
    return [(step, name.replace("STEP", str(step))) for step in steps for name in names]


def _gone(order: float, path: str, event: str = "shutil.rmtree", step: int = 99) -> dict[str, Any]:
    return {"event": event, "paths": [f"/out/{path}"], "step": step, "order": order, "site": place(6)}


def _moved(order: float, before: str, after: str, step: int = 0) -> dict[str, Any]:
    return _gone(order, before, "os.rename", step) | {"paths": [f"/out/{before}", f"/out/{after}"]}


def _record(saves: list[dict[str, Any]], *changes: dict[str, Any], **more: Any) -> dict[str, Any]:
    record = {"saves": saves, "changes": list(changes), "loads": [], "missing": [], "limits": []}
    return {"checkpoint_files": record | {"may_remove": [], "may_limit": []} | more}


def _hf(
    steps: Iterable[int], *changes: dict[str, Any], limit: dict[str, Any] = NO_LIMIT, **more: Any
) -> dict[str, Any]:
    names = tuple(f"checkpoint-STEP/{name}" for name in TRAINER)
    saves = _saved(_each(steps, *names), ("accelerate", "transformers"))
    return _record(saves, *changes, limits=[limit], may_remove=["transformers/trainer.py"], **more)


def _shifting(saves: int) -> dict[str, Any]:
    """``last.pt`` becomes ``last.1.pt``, that ``last.2.pt``, and so on, before each save."""
    changes = [
        _moved(number - 0.5 + age / 100, f"last.{age}.pt" if age else "last.pt", f"last.{age + 1}.pt", number)
        for number in range(1, saves)
        for age in (*range(number - 1, 0, -1), 0)
    ]
    changes = [one | {"order": position / 1000 + int(one["order"])} for position, one in enumerate(changes)]
    return _record(_saved((number, "last.pt") for number in range(saves)), *changes)


CASES: dict[str, tuple[dict[str, Any], str | None]] = {
    "trainer, one folder": (_hf([10]), None),
    "trainer, a limit, one folder": (_hf([10], limit=LIMIT_2), "inconclusive"),
    "trainer, a limit, two folders": (_hf([10, 12], limit=LIMIT_2), "inconclusive"),
    "trainer, a limit that is larger": (_hf(range(1, 16), limit=LIMIT_20), "inconclusive"),
    "trainer, two folders": (_hf([10, 20]), "inconclusive"),
    "trainer, no limit": (_hf(range(2, 14, 2)), "verified"),
    "trainer, a folder removed": (_hf([2, 4, 6], _gone(11, "checkpoint-2"), limit=LIMIT_2), "refuted"),
    "trainer, removed by another process": (_hf([2, 4, 6], missing=[f"/out/checkpoint-2/{one}" for one in TRAINER]), "refuted"),
    "limit of the program": (_record(_saved(_each(range(9), "STEP.pt")), limits=[OWN_LIMIT]), "inconclusive"),
    "limit of a library that does not save": (_record(_saved(_each(range(9), "STEP.pt")), limits=[LIMIT_20]), "verified"),
    "shards of one": (_record(_saved(_each([3], *SHARDS, *(f"extra{n}.pt" for n in range(5))))), None),
    "shards of each": (_record(_saved(_each(range(6), *(f"STEP/{one}" for one in SHARDS)))), "verified"),
    "code that deletes": (_record(_saved(_each(range(6), "STEP.pt")), may_remove=["train.py"]), "inconclusive"),
    "code that deletes and never did": (_record(_saved(_each(range(11), "STEP.pt")), may_remove=["train.py"]), "verified"),
    "code that deletes checkpoints and did not": (
        _record(_saved(_each(range(15), "STEP.pt")), may_remove=["train.py"], prunes=["train.py"]), "inconclusive",
    ),
    "code that deletes checkpoints and never did": (
        _record(_saved(_each(range(101), "STEP.pt")), may_remove=["train.py"], prunes=["train.py"]), "verified",
    ),
    "code that deletes, and keeps track": (
        _record(_saved(_each(range(15), "STEP.pt")), may_remove=["train.py"], tracks=["holds their names"]),
        "inconclusive",
    ),
    "code that names a limit": (_record(_saved(_each(range(6), "STEP.pt")), may_limit=["train.py"]), "inconclusive"),
    "evidence of before": ({"checkpoint_files": {"saves": _saved(_each(range(6), "STEP.pt")), "changes": [], "loads": []}}, "inconclusive"),
    "two networks": (_record(_saved(_each(range(3), "G_STEP.pt", "D_STEP.pt"))), "inconclusive"),
    "two networks, all kept": (_record(_saved(_each(range(6), "G_STEP.pt", "D_STEP.pt"))), "verified"),
    "last and best": (_record(_saved(_each(range(6), "last.pt", "best.pt"))), "refuted"),
    "last and numbered": (_record(_saved(_each(range(6), "last.pt", "STEP.pt"))), "verified"),
    "last and few numbered": (_record(_saved([*_each(range(6), "last.pt"), (5, "epoch1.pt")])), "inconclusive"),
    "numbered, of which one goes": (_record(_saved(_each(range(9), "STEP.pt")), _gone(9, "0.pt", "os.remove")), "refuted"),
    "numbered behind a renaming, of which one goes": (
        _record(
            _saved(_each(range(4), "tmpSTEP")),
            *(_moved(step + 0.5, f"tmp{step}", f"epoch={step}.ckpt", step) for step in range(4)),
            _gone(1.7, "epoch=0.ckpt", "os.remove", 1),
            limits=[OWN_LIMIT],
        ),
        "refuted",
    ),
    "a ring of three": (_record(_saved((step, f"slot{step % 3}.pt") for step in range(9))), "refuted"),
    "a ring of six": (_record(_saved((step, f"slot{step % 6}.pt") for step in range(9))), "inconclusive"),
    "backups that move on": (_shifting(7), "inconclusive"),
    "the last save before the end": (_record(_saved(_each(range(16, 21), "STEP.pt"))), "inconclusive"),
}  # fmt: skip


@for_every("case", CASES)
def test_what_piles_up(case: str) -> None:
    records, verdict = CASES[case]
    steps = max(20, *(save["step"] + 1 for save in records["checkpoint_files"]["saves"]), 0)
    assert verdicts(rank(records, steps=steps if steps > 30 else 20)).get(RULE, (None,))[0] == verdict


def test_the_reason_counts_checkpoints_and_names_the_limit() -> None:
    words = (
        "2 checkpoints saved, and save_total_limit=2 is set, so none had to be removed yet (10 files, 1,000 bytes left)"
    )
    assert verdicts(rank(_hf([10, 12], limit=LIMIT_2)))[RULE][1].startswith(words)


def _ranks(steps: Iterable[int], *changes: dict[str, Any]) -> list[Evidence]:
    """Two ranks that save a shard each; the first one also removes."""
    every = list(steps)
    shards = [_saved(_each(every, f"STEP/__{number}_0.distcp")) for number in range(2)]
    return [rank(_record(shards[0], *changes), 0, 2), rank(_record(shards[1]), 1, 2)]


@pytest.mark.parametrize(
    ("ranks", "verdict"),
    [
        (_ranks(range(3)), "inconclusive"),
        (_ranks(range(6)), "verified"),
        (_ranks(range(6), _gone(9, "0", step=5)), "refuted"),
    ],
    ids=["three", "six", "rotated"],
)
def test_shards_of_ranks_are_one_checkpoint(ranks: list[Evidence], verdict: str) -> None:
    assert verdicts(*ranks)[RULE][0] == verdict
    assert verdicts(ranks[1], ranks[0])[RULE][0] == verdict


@pytest.mark.parametrize(
    ("paths", "verdict"),
    [
        ([(1, "last.pt")], "inconclusive"),
        ([(1, "1.pt"), (2, "2.pt"), (3, "3.pt")], "inconclusive"),
        ([(1, "last.pt"), (2, "last.pt")], "verified"),
    ],
    ids=["once", "numbered", "twice"],
)
def test_only_a_file_of_this_run_is_written_over(paths: list[tuple[int, str]], verdict: str) -> None:
    found = verdicts(rank(_record(_saved(paths, existed=True))))["non-atomic-checkpoint"]
    assert found[0] == verdict
    assert ("from before the run" in found[1]) == (verdict == "inconclusive")


def test_a_file_that_got_its_name_in_this_run_is_of_this_run() -> None:
    saves = _saved([(1, "new.tmp"), (2, "last.pt")])
    saves[1]["existed"] = True
    assert verdicts(rank(_record(saves, _moved(0.5, "new.tmp", "last.pt"))))["non-atomic-checkpoint"][0] == "verified"


@pytest.mark.parametrize(
    ("step", "verdict"), [(1, None), (2, "verified")], ids=["as-soon-as-written", "when-the-next-one-comes"]
)
def test_a_file_that_goes_at_once_was_no_checkpoint(step: int, verdict: str | None) -> None:
    change = _gone(0.5, "temp.p", "os.remove", step)
    found = verdicts(rank(_record(_saved([(1, "temp.p"), (2, "temp.p")]), change)))
    assert found.get("checkpoint-removed-before-replacement", (None,))[0] == verdict


def test_cleaning_the_folder_of_an_earlier_run_removes_no_checkpoint_of_this_one() -> None:
    record = _record(_saved([(1, "last.pt")]), _gone(-1, "", step=0))
    assert "checkpoint-removed-before-replacement" not in verdicts(rank(record))


def test_a_limit_of_one_callback_is_not_said_to_be_that_of_another() -> None:
    record = _hf([10, 12, 14])
    record["checkpoint_files"]["limits"] = [NO_LIMIT | {"value": -1}, LIMIT_2]
    verdict, reason = verdicts(rank(record))[RULE]
    assert verdict == "inconclusive"
    assert "save_total_limit=2 (elsewhere -1) is set" in reason


@pytest.mark.parametrize(("lines", "places"), [((20, 20), [5, 20]), ((20, 30), [5])], ids=["one-caller", "two-callers"])
def test_a_function_that_saves_is_judged_for_its_only_caller(lines: tuple[int, int], places: list[int]) -> None:
    saves = _saved([(1, "last.pt"), (2, "last.pt")])
    for save, line in zip(saves, lines, strict=True):
        save["callers"] = [place(line)]
    found = judgements(rank(_record(saves)))[RULE]
    assert [one.line for one in found.sites] == places


TEXTS = {
    "os.remove(path)": True,
    "path.unlink()": True,
    "shutil.rmtree(old)": True,
    'os.system(f"rm -rf {old}")': True,
    'subprocess.run(["rm", "-r", old])': True,
    "names.remove(name)": False,
    "normalise(x)": False,
    "form - r": False,
}


@for_every("text", TEXTS)
def test_code_that_deletes(text: str) -> None:
    assert Skim(f"import os\n{text}\n".encode()).removes_files is TEXTS[text]


def test_a_rank_that_was_killed_where_another_saved_might_have_saved_too() -> None:
    rule = "checkpoint-saved-by-every-rank"

    def ranks(killed_after: int) -> list[Evidence]:
        saved = rank(_record(_saved([(7, "last.pt")])), 0, 2, steps=8)
        return [saved, rank({"models": []}, 1, 2, steps=killed_after)]

    assert rule not in verdicts(*ranks(7))
    assert verdicts(*ranks(8))[rule][0] == "refuted"
