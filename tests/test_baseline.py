"""The baseline: what a check holds back, what is new, what is gone, and what becomes of fixes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from baselines import BEAT, FILE, HEAD, MODULE, RULES, SETTINGS, TRAIN, WRAP, entries
from calling import Enter, Run


@pytest.fixture
def project(enter: Enter) -> Path:
    return enter({"pyproject.toml": SETTINGS, "train.py": MODULE, "run.sh": BEAT})


def rules(out: str) -> list[tuple[str, str]]:
    return [(one["path"], one["rule"]) for one in json.loads(out)["findings"]]


def test_a_baseline_silences_what_it_holds(project: Path, run: Run) -> None:
    assert run("check")[0] == 1
    assert run("baseline") == (0, f"Wrote 2 known findings to {FILE}: 2 new, 0 gone.\n", "")
    code, out, err = run("check")
    assert (code, err) == (0, "")
    assert out == "No findings.\n2 files read, 2 findings in the baseline.\n"
    code, out, _ = run("check", "--format", "json")
    assert (code, rules(out), json.loads(out)["summary"]["baselined"]) == (0, [], 2)
    assert run("check", "--no-baseline")[0] == 1
    assert run("check", "--isolated", "--select", RULES[0])[0] == 1


def test_where_the_command_is_called_from_changes_nothing(
    project: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("baseline")
    text = (project / FILE).read_bytes()
    (project / "inner").mkdir()
    monkeypatch.chdir(project / "inner")
    assert run("check", "..")[0] == 0
    assert run("baseline", "..")[1] == f"{project.as_posix()}/{FILE} is up to date: 2 known findings.\n"
    assert (project / FILE).read_bytes() == text


MOVED = {
    "lines-above": "import os\n\n\ndef other():\n    return os\n\n\n" + MODULE,
    "layout": MODULE.replace("find_unused_parameters=True", "find_unused_parameters = True,  # sic\n    "),
    "windows": "\ufeff" + MODULE.replace("\n", "\r\n"),
    "last-lines-gone": MODULE + "\n\n# the end",
}


@pytest.mark.parametrize("name", MOVED)
def test_known_defects_may_move(project: Path, run: Run, name: str) -> None:
    run("baseline")
    (project / "train.py").write_bytes(MOVED[name].encode())
    assert run("check")[:2] == (0, "No findings.\n2 files read, 2 findings in the baseline.\n")


NEW = {
    "second-equal-defect": (MODULE.replace(WRAP, WRAP + WRAP), False),
    "another-function": (MODULE + "\n\ndef again(model, loader):\n" + WRAP + TRAIN, False),
    "renamed-function": (MODULE.replace("main", "run"), True),
}


@pytest.mark.parametrize("name", NEW)
def test_what_the_baseline_does_not_hold_is_new(project: Path, run: Run, name: str) -> None:
    run("baseline")
    text, stale = NEW[name]
    (project / "train.py").write_text(text)
    code, out, err = run("check", "--format", "json")
    assert (code, err) == (1, "")
    assert rules(out) == [("train.py", "ddp-find-unused-parameters")]
    assert bool(json.loads(out)["summary"]["stale"]) is stale


def test_the_first_of_equal_defects_is_the_known_one(project: Path, run: Run) -> None:
    run("baseline")
    (project / "train.py").write_text(MODULE.replace(WRAP, WRAP + WRAP))
    found = json.loads(run("check", "--format", "json")[1])["findings"]
    assert [one["line"] for one in found] == [6]


def test_stale_entries_are_a_note_and_no_failure(project: Path, run: Run) -> None:
    run("baseline")
    (project / "train.py").write_text(MODULE.replace("True", "False"))
    code, out, err = run("check")
    assert code == 0
    assert out.endswith("1 known finding of the baseline gone, see ldlm-lint baseline --update\n")
    assert err == "note: train.py: ddp-find-unused-parameters in main is in the baseline but no longer found\n"
    assert run("check", "--quiet") == (0, "", "")
    (one,) = json.loads(run("check", "--format", "json")[1])["summary"]["stale"]
    assert (one["path"], one["rule"], one["symbol"], one["count"]) == (
        *("train.py", "ddp-find-unused-parameters", "main"),
        1,
    )
    assert one["fingerprint"]


@pytest.mark.parametrize(
    "arguments",
    [("run.sh",), ("--select", "W7201"), ("--ignore", "ddp-find-unused-parameters"), ("--level", "error")],
    ids=" ".join,
)
def test_what_a_run_does_not_look_at_is_not_stale(project: Path, run: Run, arguments: tuple[str, ...]) -> None:
    run("baseline")
    (project / "train.py").write_text("")
    assert run("check")[2] != ""
    assert run("check", *arguments)[2] == ""
    before = (project / FILE).read_bytes()
    run("baseline", "--update", *arguments)
    assert (project / FILE).read_bytes() == before


def test_entries_of_a_deleted_file_and_of_a_rule_that_is_no_more_are_stale(project: Path, run: Run) -> None:
    run("baseline")
    path = project / FILE
    path.write_text(path.read_text().replace("excessive-heartbeat-timeout", "rule-of-old"))
    (project / "train.py").unlink()
    code, _, err = run("check")
    assert code == 1
    assert [line.split()[1:3] for line in err.splitlines()] == [
        ["run.sh:", "rule-of-old"],
        ["train.py:", "ddp-find-unused-parameters"],
    ]
    assert run("check", "run.sh")[2].count("\n") == 1


def test_a_suppressed_defect_needs_no_entry(project: Path, run: Run) -> None:
    run("baseline")
    (project / "run.sh").write_text("# ldlm-lint: ignore[W7201] a long first step\n" + BEAT)
    assert "excessive-heartbeat-timeout is in the baseline but no longer found" in run("check")[2]


def test_update_adds_what_is_new_and_removes_what_is_gone(project: Path, run: Run) -> None:
    run("baseline", "train.py")
    (project / "train.py").write_text(MODULE.replace("main", "fit"))
    assert run("baseline", "--update") == (0, f"Wrote 2 known findings to {FILE}: 2 new, 1 gone.\n", "")
    assert [(one["path"], one["symbol"]) for one in entries(project / FILE)] == [("run.sh", ""), ("train.py", "fit")]
    assert run("check")[0] == 0


def test_without_update_the_file_holds_this_run_alone(project: Path, run: Run) -> None:
    run("baseline")
    run("baseline", "run.sh")
    assert [one["path"] for one in entries(project / FILE)] == ["run.sh"]
    (project / "run.sh").write_text("")
    run("baseline", "run.sh")
    assert entries(project / FILE) == []
    assert run("check", "run.sh")[0] == 0


def test_many_stale_entries_are_cut_short(project: Path, run: Run) -> None:
    body = "".join(f"def f{number}(model, loader):\n{WRAP}{TRAIN}\n\n" for number in range(13))
    (project / "train.py").write_text(HEAD + body)
    run("baseline")
    (project / "train.py").write_text("")
    assert run("check")[2].splitlines()[-1] == "note: and 3 more"


def test_what_cannot_be_read_is_never_known(project: Path, run: Run) -> None:
    (project / "bad.sh").write_bytes(b"# caf\xe9\n")
    code, out, err = run("baseline")
    assert (code, out) == (3, f"Wrote 2 known findings to {FILE}: 2 new, 0 gone.\n")
    assert err.startswith("error: bad.sh: cannot be read")
    assert run("check")[0] == 3


def test_known_and_fixed_together(project: Path, run: Run) -> None:
    text = "export TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=12000000\nexport NCCL_TIMEOUT=7200\ntorchrun train.py\n"
    (project / "run.sh").write_text(text)
    run("baseline", "--select", "W7201")
    code, out, _ = run("check", "run.sh", "--fix", "--unsafe-fixes")
    assert code == 0
    assert "Fixed 1 finding in 1 file:\n" in out
    assert (project / "run.sh").read_text() == text.replace("export NCCL_TIMEOUT=7200\n", "")


def test_a_known_member_takes_the_fix_of_a_whole_group(project: Path, run: Run) -> None:
    block = (
        BEAT + "export TORCH_NCCL_ENABLE_MONITORING=0\nexport NCCL_TIMEOUT=7200\n"
    )
    (project / "run.sh").write_text(block + "torchrun train.py\n")
    plain = json.loads(run("run.sh", "--format", "json")[1])["findings"]
    assert all(one["fix"] for one in plain)
    run("baseline", "run.sh", "--select", "nccl-monitoring-disabled")
    found = json.loads(run("run.sh", "--format", "json")[1])["findings"]
    assert len(found) == len(plain) - 1
    assert not any(one["fix"] for one in found if one["rule"] == "excessive-heartbeat-timeout")


LOADER = """from torch.utils.data import DataLoader


def train(dataset, model, optimizer, epochs):
    loader = DataLoader(dataset, num_workers=4)
    for epoch in range(epochs):
        for batch in loader:
            model(batch).backward()
            optimizer.step()
"""


def test_a_fix_beside_a_known_defect_leaves_it_alone(project: Path, run: Run) -> None:
    (project / "train.py").write_text(LOADER)
    run("baseline", "--select", "dataloader-without-persistent-workers", "train.py")
    run("check", "train.py", "--fix", "--unsafe-fixes")
    after = (project / "train.py").read_text()
    assert "prefetch_factor" in after
    assert "persistent_workers" not in after


def test_the_fingerprint_is_the_same_on_every_machine_and_moves_along(project: Path, run: Run) -> None:
    def prints() -> list[str]:
        return [one["fingerprint"] for one in json.loads(run("train.py", "--format", "json")[1])["findings"]]

    before = prints()
    assert before == ["1986960373eff16665bbad0593879938"]
    (project / "train.py").write_text(MOVED["lines-above"])
    assert prints() == before
