"""A journal comes with the project: what is no journal, or reaches for what is not the project's own, changes nothing."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest
from calling import Enter

from ldlm_lint.autofix import lock
from ldlm_lint.autofix.journal import Journal
from ldlm_lint.autofix.lock import LockedError, locked
from ldlm_lint.autofix.runs import digest, is_inside
from ldlm_lint.cli import main
from ldlm_lint.writing import write_changed

NAME = "000001-0123456789ab"
OLD, NEW = b"export NCCL_TIMEOUT=7200\ntorchrun train.py\n", b"torchrun train.py\n"
posix = pytest.mark.skipif(os.name == "nt", reason="links and pipes of POSIX systems")
Document = dict[str, Any]


def document(path: str = "run.sh", **changed: Any) -> Document:
    entry = {"path": path, "before": digest(OLD), "after": digest(NEW)}
    whole = {
        "schema": "ldlm-lint-run/1",
        "id": NAME,
        "time": "2026-01-31 12:00:00 UTC",
        "options": ["--fix"],
        "rules": {"ineffective-environment-variable": 1},
        "files": [entry],
        "undoes": "",
    }
    return {**whole, **changed}


@pytest.fixture
def project(enter: Enter) -> Path:
    return enter({"pyproject.toml": "", "run.sh": NEW})


def plant(root: Path, journal: bytes, state: str = "applied", before: bytes = OLD) -> Path:
    """A journal as somebody may have put it into a repository."""
    folder = root / ".ldlm-lint" / "runs" / NAME
    folder.mkdir(parents=True)
    (folder / "journal.json").write_bytes(journal)
    (folder / "state").write_text(state)
    (folder / "0.before").write_bytes(before)
    return folder


def undo(capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    capsys.readouterr()
    code = main(["undo"])
    return code, capsys.readouterr().err


def test_what_is_planted_is_a_journal(project: Path) -> None:
    plant(project, json.dumps(document()).encode())
    assert main(["undo"]) == 0
    assert (project / "run.sh").read_bytes() == OLD


@pytest.mark.parametrize("state", ["applied", "prepared"])
@pytest.mark.parametrize(
    "path",
    [
        *("../outside.sh", "a/../../outside.sh", "/etc/profile", "", ".", "./run.sh", "a//run.sh", "run.sh/", "a\0.sh"),
        *(".git/hooks/pre-commit", ".GIT/config", "sub/.git/config", ".git./config", ".ldlm-lint/runs/x.sh"),
        *(".venv/lib/x.py", "env/lib/python3.11/site-packages/x.py", "node_modules/x.json"),
    ],
)
def test_a_path_that_is_not_the_projects_own(
    project: Path, capsys: pytest.CaptureFixture[str], path: str, state: str
) -> None:
    outside = project.parent / "outside.sh"
    outside.write_bytes(NEW)
    plant(project, json.dumps(document(path)).encode(), state)
    code, err = undo(capsys)
    assert code == 3
    assert "is not a path of a file in the project; nothing was changed" in err
    assert outside.read_bytes() == NEW
    assert not is_inside(path)


@pytest.mark.skipif(os.name != "nt", reason="drives and backslashes of Windows")
@pytest.mark.parametrize("path", ["C:x.py", "C:/x.py", "..\\x.py", "\\x.py", ".git\\config"])
def test_a_path_of_windows(path: str) -> None:
    assert not is_inside(path)


@posix
@pytest.mark.parametrize("state", ["applied", "prepared"])
def test_a_link_is_not_followed(project: Path, capsys: pytest.CaptureFixture[str], state: str) -> None:
    outside = project.parent / "outside"
    outside.mkdir()
    (outside / "run.sh").write_bytes(NEW)
    temporary = outside / f".ldlm-lint-{NAME}-0.tmp"
    temporary.write_bytes(b"not ours")
    (project / "sub").symlink_to(outside)
    plant(project, json.dumps(document("sub/run.sh")).encode(), state)
    undo(capsys)
    assert (outside / "run.sh").read_bytes() == NEW
    assert temporary.exists()


@pytest.mark.parametrize("name", ["data.bin", "notes.md", "id_rsa"])
def test_a_file_that_is_never_fixed(project: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    (project / name).write_bytes(NEW)
    plant(project, json.dumps(document(name)).encode())
    assert undo(capsys)[0] == 3
    assert (project / name).read_bytes() == NEW


@pytest.mark.parametrize(
    "journal, words",
    [
        pytest.param(b"", "is not valid JSON", id="empty"),
        pytest.param(b"\x80\x04cposix\nsystem\n", "is not valid JSON", id="pickle"),
        pytest.param(b"[" * 200_000, "is not valid JSON", id="deep"),
        pytest.param(b"[]", "must be an object", id="list"),
        pytest.param(json.dumps(document(schema="ldlm-lint-run/9")).encode(), "must be an object with", id="version"),
        pytest.param(json.dumps(document(id="000002-0123456789ab")).encode(), "belongs to another run", id="another"),
        pytest.param(json.dumps(document(time="\x1b[2J")).encode(), '"time" must be', id="time"),
        pytest.param(json.dumps(document(options=["\x1b[2J"])).encode(), '"options" must be', id="options"),
        pytest.param(json.dumps(document(rules={"\x1b": 1})).encode(), '"rules" must be', id="rules"),
        pytest.param(json.dumps(document(rules={"a": True})).encode(), '"rules" must be', id="counts"),
        pytest.param(json.dumps(document(undoes="../x")).encode(), '"undoes" must be', id="undoes"),
        pytest.param(json.dumps(document(files={})).encode(), '"files" must be', id="files"),
        pytest.param(
            json.dumps(document(files=[{"path": "a.sh"}])).encode(), "must be an object with path", id="entry"
        ),
        pytest.param(json.dumps(document(files=document()["files"] * 2)).encode(), "names a file twice", id="twice"),
        pytest.param(
            json.dumps(document(files=[{"path": "a.sh", "before": "0", "after": "0"}])).encode(), "hashes", id="hash"
        ),
    ],
)
@pytest.mark.parametrize("state", ["applied", "prepared"])
def test_what_is_no_journal(
    project: Path, capsys: pytest.CaptureFixture[str], journal: bytes, words: str, state: str
) -> None:
    plant(project, journal, state)
    code, err = undo(capsys)
    assert code == 3
    assert words in err
    assert err.count("\n") == 1
    assert "\x1b" not in err
    assert (project / "run.sh").read_bytes() == NEW
    if state == "prepared":
        (project / "run.sh").write_bytes(OLD)
        assert main(["--fix", "--quiet"]) == 3
        assert (project / "run.sh").read_bytes() == OLD


@pytest.mark.parametrize("state", ["applied", "prepared"])
@pytest.mark.parametrize("before", [OLD + b"rm -rf /\n", b"x" * 20_000_000], ids=["other", "huge"])
def test_old_bytes_that_are_others(
    project: Path, capsys: pytest.CaptureFixture[str], before: bytes, state: str
) -> None:
    # A second file has its new bytes not yet, so that an interrupted run is to be taken back.
    files = [*document()["files"], {"path": "two.sh", "before": digest(NEW), "after": digest(OLD)}]
    (project / "two.sh").write_bytes(NEW)
    plant(project, json.dumps(document(files=files)).encode(), state, before)
    code, err = undo(capsys)
    assert code == 3
    assert ("was changed by another program" in err) != ("larger than" in err)
    assert (project / "run.sh").read_bytes() == NEW


@posix
@pytest.mark.parametrize("name", ["journal.json", "0.before", "state"])
def test_links_and_pipes_in_the_journal(project: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    folder = plant(project, json.dumps(document()).encode())
    moved = project.parent / name
    (folder / name).rename(moved)
    (folder / name).symlink_to(moved)
    assert undo(capsys)[0] == 3
    (folder / name).unlink()
    os.mkfifo(folder / name)
    assert undo(capsys)[0] == 3
    assert (project / "run.sh").read_bytes() == NEW


@pytest.mark.parametrize("state", ["", "Applied", "x" * 1000])
def test_a_state_that_is_none(project: Path, capsys: pytest.CaptureFixture[str], state: str) -> None:
    plant(project, json.dumps(document()).encode(), state)
    assert undo(capsys)[0] == 3
    assert main(["--quiet"]) == 0


def test_an_interrupted_run_that_a_user_worked_on(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A check says so, a fix brings it to an end; what was changed meanwhile stays, and its old bytes can be had."""
    files = [*document()["files"], {"path": "two.sh", "before": digest(OLD), "after": digest(NEW)}]
    files.append({"path": "gone.sh", "before": digest(OLD), "after": digest(NEW)})
    (project / "two.sh").write_bytes(b"echo mine\n")
    folder = plant(project, json.dumps(document(files=files)).encode(), "prepared")
    assert main(["--quiet"]) == 0
    assert "an earlier --fix was interrupted" in capsys.readouterr().err
    assert (project / "run.sh").read_bytes() == NEW
    main(["--fix", "--quiet", "--ignore", "ALL"])
    err = capsys.readouterr().err
    assert "an interrupted run of 2026-01-31 12:00:00 UTC was undone: 1 file restored" in err
    assert "two.sh: changed after" in err
    assert str(folder / "1.before") in err
    assert "gone.sh: changed after" in err
    assert (project / "run.sh").read_bytes() == OLD
    assert (project / "two.sh").read_bytes() == b"echo mine\n"
    assert main(["--quiet"]) == 1
    assert "interrupted" not in capsys.readouterr().err
    assert main(["undo"]) == 1


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_file_system_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def refuse(_: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(lock, "_lock", refuse)
    path = tmp_path / "lock"
    with locked(path):
        told = rf"process {os.getpid()} on .* remove .*lock\.held"
        with pytest.raises(LockedError, match=told), locked(path, 0):
            pytest.fail("two at once")
        assert (tmp_path / "lock.held").exists()
    assert not (tmp_path / "lock.held").exists()
    with locked(path, 0):
        pass


def test_the_next_number_is_the_largest_yet(project: Path) -> None:
    plant(project, json.dumps(document()).encode())
    journal = Journal(project)
    (journal.runs / NAME).rename(journal.runs / "999999-0123456789ab")
    with journal.held():
        run = journal.begin([("run.sh", NEW, OLD)], (), {})
    assert run.id.startswith("1000000-")
    assert list(journal.states()) == ["999999-0123456789ab", run.id]


def test_a_name_that_is_no_text(project: Path) -> None:
    name = os.fsdecode(b"caf\xe9 \xf0\x9f\x98\x80.sh") if os.name != "nt" else "caf\u00e9.sh"
    path = project / name
    path.write_bytes(OLD)
    assert write_changed(Journal(project), {str(path): OLD}, {str(path): NEW}) == ()
    assert path.read_bytes() == NEW
    assert main(["undo"]) == 0
    assert path.read_bytes() == OLD
