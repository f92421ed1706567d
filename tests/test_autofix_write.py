"""Atomic writes: old bytes or new ones, the file's mode and link kept, a changed file refused."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest

from ldlm_lint.autofix import write
from ldlm_lint.autofix.write import FileChangedError, WriteError, create_atomically, write_atomically

posix = pytest.mark.skipif(os.name == "nt", reason="modes and links of POSIX systems")


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "run.sh"
    path.write_bytes(b"old\r\n")
    return path


def test_the_bytes_are_replaced_and_nothing_else_stays(script: Path) -> None:
    write_atomically(script, b"old\r\n", b"new\r\n")
    assert script.read_bytes() == b"new\r\n"
    assert os.listdir(script.parent) == ["run.sh"]


def test_a_changed_file_is_refused(script: Path) -> None:
    with pytest.raises(FileChangedError, match=r"run\.sh"):
        write_atomically(script, b"other", b"new")
    assert script.read_bytes() == b"old\r\n"
    assert os.listdir(script.parent) == ["run.sh"]


def test_a_file_that_changes_while_the_new_bytes_are_written_is_refused(
    script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write.os, "fsync", lambda _: script.write_bytes(b"saved by an editor"))
    with pytest.raises(FileChangedError):
        write_atomically(script, b"old\r\n", b"new")
    assert script.read_bytes() == b"saved by an editor"
    assert os.listdir(script.parent) == ["run.sh"]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_failure_leaves_the_old_file_alone(
    script: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(write.os, "replace", fail)
    with pytest.raises(WriteError if isinstance(error, OSError) else KeyboardInterrupt):
        write_atomically(script, b"old\r\n", b"new")
    assert script.read_bytes() == b"old\r\n"
    assert os.listdir(script.parent) == ["run.sh"]


@posix
@pytest.mark.parametrize("mode", [0o755, 0o640, 0o600])
def test_the_mode_is_kept(script: Path, mode: int) -> None:
    script.chmod(mode)
    write_atomically(script, b"old\r\n", b"new")
    assert stat.S_IMODE(script.stat().st_mode) == mode


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away")
def test_the_owner_is_kept(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.chown(script, 12345, 54321)
    script.chmod(0o4750)
    write_atomically(script, b"old\r\n", b"new")
    status = script.stat()
    assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (12345, 54321, 0o4750)

    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(write.os, "chown", refuse)
    with pytest.raises(WriteError, match="not permitted"):
        write_atomically(script, b"new", b"newer")
    assert script.read_bytes() == b"new"


@posix
def test_a_link_stays_a_link(script: Path, tmp_path: Path) -> None:
    folder = tmp_path / "links"
    folder.mkdir()
    link = folder / "link.sh"
    link.symlink_to("../run.sh")
    write_atomically(link, b"old\r\n", b"new", root=tmp_path)
    assert link.is_symlink()
    assert os.readlink(link) == "../run.sh"
    assert script.read_bytes() == b"new"
    assert os.listdir(folder) == ["link.sh"]
    with pytest.raises(WriteError, match="leads out of"):
        write_atomically(link, b"new", b"newer", root=folder)
    assert script.read_bytes() == b"new"


def test_a_write_protected_file_is_refused(script: Path) -> None:
    script.chmod(0o444)
    with pytest.raises(WriteError, match="write-protected"):
        write_atomically(script, b"old\r\n", b"new")
    assert script.read_bytes() == b"old\r\n"
    script.chmod(0o644)


@pytest.mark.parametrize("name", ["missing.sh", "."])
def test_what_is_no_file_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(WriteError):
        write_atomically(tmp_path / name, b"", b"new")
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(sys.platform != "linux", reason="other systems allow shorter or other names")
def test_a_long_name_leaves_room_for_the_temporary_one(tmp_path: Path) -> None:
    path = tmp_path / ("\u00e4" * 120 + ".py")
    path.write_bytes(b"old")
    write_atomically(path, b"old", b"new")
    assert path.read_bytes() == b"new"


def test_a_new_file_has_the_mode_of_new_files(tmp_path: Path) -> None:
    path = tmp_path / "new.json"
    create_atomically(path, b"{}", root=tmp_path)
    plain = tmp_path / "plain"
    plain.touch()
    assert path.read_bytes() == b"{}"
    assert path.stat().st_mode == plain.stat().st_mode
    assert sorted(os.listdir(tmp_path)) == ["new.json", "plain"]


@pytest.mark.parametrize("name", ["there", "missing/new", "../out"])
def test_a_file_is_not_made_over_another_or_elsewhere(tmp_path: Path, name: str) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "there").write_bytes(b"old")
    with pytest.raises(WriteError):
        create_atomically(root / name, b"new", root=root)
    assert (root / "there").read_bytes() == b"old"
    assert os.listdir(root) == ["there"]
    assert os.listdir(tmp_path) == ["root"]
