"""The script that records what is found in public repositories: files come from git's objects, and verdicts stay."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import public_findings  # noqa: E402

TRAIN = "import torch\n\n\ndef load(path):\n    return torch.load(path)\n"
FORMS = ("someone/training/.git", "someone+training/repo", "someone_training", "training/.git")


def git(folder: Path, *words: str) -> str:
    identity = {f"GIT_{who}_{what}": "a@localhost" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    command = ["git", "-c", "core.symlinks=true", *words]
    return subprocess.run(command, cwd=folder, env=os.environ | identity, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, str]:
    """A repository, and its commit, which the list names; what is checked out is another text."""
    folder = tmp_path / "made"
    folder.mkdir()
    git(folder, "init", "--quiet")
    (folder / "train.py").write_text(TRAIN)
    # What would be imported by `python -m` in this folder.
    for name in ("json.py", "ldlm_lint.py", "sitecustomize.py"):
        (folder / name).write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    (folder / "large.py").write_text("#" * (public_findings.LARGEST + 1))
    (folder / "link.py").symlink_to("train.py")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "first")
    (folder / "train.py").write_text("")
    commit = git(folder, "rev-parse", "HEAD")
    (tmp_path / "list").write_text(f"# name commit\nsomeone/training {commit}\n")
    monkeypatch.setattr(public_findings, "LIST", tmp_path / "list")
    return folder, commit


def record(clones: Path, file: Path, *options: str) -> int:
    return public_findings.main(["record", str(clones), str(file), *options])


def test_a_record_holds_the_findings_of_the_commit_and_no_code_runs(made: tuple[Path, str], tmp_path: Path) -> None:
    folder, commit = made
    (tmp_path / "clones").mkdir()
    folder.rename(tmp_path / "clones" / "training")
    assert record(tmp_path / "clones", tmp_path / "record.json") == 0
    held = json.loads((tmp_path / "record.json").read_text())["someone/training"]
    assert (held["commit"], held["errors"]) == (commit, [])
    assert [(one["rule"], one["path"], one["line"]) for one in held["findings"]] == [("checkpoint-load-unspecified", "train.py", 5)]
    # The three that would run, and the training; neither the link nor the large file.
    assert held["summary"]["files"] == 4
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("form", FORMS)
def test_a_clone_is_found_in_the_usual_places(form: str, made: tuple[Path, str], tmp_path: Path) -> None:
    folder, commit = made
    place = tmp_path / "clones" / form
    place.parent.mkdir(parents=True)
    (folder / ".git").rename(place)
    repository = public_findings.Repository("someone/training", commit)
    assert public_findings.git_directory(tmp_path / "clones", repository) == place


def test_what_is_missing_is_told_with_the_command_that_clones_it(made: tuple[Path, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert record(tmp_path / "nowhere", tmp_path / "record.json") == 2
    told = capsys.readouterr().err
    assert f"someone/training: no clone has {made[1]}" in told
    assert f"git clone --no-checkout https://github.com/someone/training {tmp_path}/nowhere/someone+training" in told


def finding(line: int, message: str = "a | b", **others: object) -> dict[str, object]:
    place = {"path": "train.py", "line": line, "column": 1, "end_line": line, "end_column": 2, "cell": None}
    return {"rule": "some-rule", "severity": "info", "message": message, "related": [], "fix": None, "fingerprint": str(line), **place, **others}


def test_differences_are_a_table_that_keeps_its_verdicts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = []
    for name, findings in (("old", [finding(1), finding(2)]), ("new", [finding(2, "other"), finding(3)])):
        held = {"commit": "c0", "summary": {}, "errors": [], "findings": findings}
        files.append(tmp_path / f"{name}.json")
        files[-1].write_text(public_findings.text_of({"someone/training": held, f"{name}/alone": held}))
    words = ["compare", *map(str, files), "--table", str(tmp_path / "table.md")]
    assert public_findings.main(words) == 2
    said = capsys.readouterr()
    assert said.out == "3 differences in 1 of 1 repositories\n"
    assert "new/alone: not in both records at one commit" in said.err
    place = "[train.py:{0}](https://github.com/someone/training/blob/c0/train.py#L{0})"
    table = (tmp_path / "table.md").read_text()
    assert table.splitlines()[2:] == [
        f"| someone/training | {place.format(1)} | some-rule | gone | a \\| b |  |",
        f"| someone/training | {place.format(2)} | some-rule | changed | message: a \\| b → other |  |",
        f"| someone/training | {place.format(3)} | some-rule | new | a \\| b |  |",
    ]
    (tmp_path / "table.md").write_text(table.replace("gone | a \\| b |  |", "gone | a \\| b | right: it was false |"))
    assert public_findings.main(words) == 2
    assert (tmp_path / "table.md").read_text().count("gone | a \\| b | right: it was false |") == 1


def test_the_list_names_many_repositories_once_each_with_a_commit() -> None:
    listed = public_findings.repositories((ROOT / "scripts" / "public_repositories.txt").read_text(encoding="utf-8"))
    assert len({one.name.lower() for one in listed}) == len(listed) >= 40
    assert all(len(one.commit) == 40 and one.name.count("/") == 1 for one in listed)
