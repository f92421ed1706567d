"""What git tracks is linted, whatever its ignore files say: the names in an index of every version."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from collected import for_every

from ldlm_lint.cache.index import Index
from ldlm_lint.config import Config
from ldlm_lint.discover import discover
from ldlm_lint.tracked import Tracked, index_of, tracked_names

GIT = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
NAMES = ["a.py", "configs/base.yaml", "configs/large/base.yaml", "configs-old.yaml", "scripts/train.sh"]


def offset(number: int) -> bytes:
    """A number as an index of version 4 writes it."""
    found = [number & 0x7F]
    while number := number >> 7:
        number -= 1
        found.insert(0, 0x80 | (number & 0x7F))
    return bytes(found)


def index(names: list[str], version: int = 2, extended: bool = False) -> bytes:
    data, before = b"DIRC" + version.to_bytes(4, "big") + len(names).to_bytes(4, "big"), b""
    for name in map(str.encode, sorted(names)):
        entry = bytes(60) + (0x4000 if extended else 0).to_bytes(2, "big") + (b"\0\0" if extended else b"")
        if version == 4:
            same = next((n for n in range(len(name)) if before[n : n + 1] != name[n : n + 1]), len(name))
            entry += offset(len(before) - same) + name[same:] + b"\0"
            before = name
        else:
            entry += name
            entry += bytes(8 - len(entry) % 8)
        data += entry
    return data + bytes(20)


def repository(root: Path, names: list[str], *ignored: str) -> Path:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("lr: 1\n")
    (root / ".git").mkdir(exist_ok=True)
    (root / ".git" / "index").write_bytes(index(names))
    (root / ".gitignore").write_text("\n".join(ignored) + "\n")
    return root


def found(root: Path, *paths: str, exclude: tuple[str, ...] = ()) -> list[str]:
    config = Config(root=root.as_posix(), exclude=exclude)
    files = discover([root / path for path in paths or (".",)], config, root).files
    return [path.relative_to(root).as_posix() for path, _ in files]


@pytest.mark.parametrize("version, extended", [(2, False), (3, True), (4, False), (4, True)])
def test_the_names_of_every_version(tmp_path: Path, version: int, extended: bool) -> None:
    path = tmp_path / "index"
    path.write_bytes(index([*NAMES, "long/" + "x" * 300], version, extended))
    assert tracked_names(path.as_posix()) == sorted([*NAMES, "long/" + "x" * 300])


@for_every("data", [b"", b"DIRC", b"DIRC" + bytes(8), index(NAMES)[:150], index(NAMES, 5), index(NAMES)[4:], b"x" * 5000])
def test_what_is_no_index_names_nothing(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "index"
    path.write_bytes(data)
    assert tracked_names(path.as_posix()) == []
    assert tracked_names((tmp_path / "none").as_posix()) == []


def test_what_lies_at_or_below_a_path(tmp_path: Path) -> None:
    root = repository(tmp_path, NAMES).as_posix()
    tracked = Tracked(lambda kind, path: None)
    assert list(tracked.at(f"{root}/configs")) == [f"{root}/configs/base.yaml", f"{root}/configs/large/base.yaml"]
    assert list(tracked.at(f"{root}/configs/base.yaml")) == [f"{root}/configs/base.yaml"]
    assert list(tracked.at(f"{root}/conf")) == list(tracked.at(f"{root}/scripts/train")) == []


def test_no_index_is_read_outside_of_the_repository(tmp_path: Path) -> None:
    elsewhere = tmp_path / "main" / ".git"
    elsewhere.mkdir(parents=True)
    (elsewhere / "index").write_bytes(index(NAMES))
    assert index_of((tmp_path / "main").as_posix()) == (elsewhere / "index").as_posix()
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / ".git").write_text(f"gitdir: {elsewhere.as_posix()}\n")
    assert index_of((tmp_path / "one").as_posix()) == ""
    assert list(Tracked(lambda kind, path: None).at(f"{tmp_path.as_posix()}/one/configs")) == []


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege on Windows")
def test_no_link_is_followed_to_an_index(tmp_path: Path) -> None:
    repository(tmp_path / "main", NAMES)
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / ".git").symlink_to(tmp_path / "main" / ".git")
    assert index_of((tmp_path / "one").as_posix()) == ""


def test_ignore_files_do_not_apply_to_what_is_tracked(tmp_path: Path) -> None:
    root = repository(tmp_path, NAMES, "configs/", "*.sh", "configs-*")
    (root / "configs" / "mine.yaml").write_text("lr: 2\n")
    (root / "mine.sh").write_text("python train.py\n")
    assert found(root) == sorted(NAMES)
    assert found(root, "scripts") == ["scripts/train.sh"]
    # What the user names is taken anyway, with all that lies there.
    assert "configs/mine.yaml" in found(root, "configs")


def test_exclude_and_the_folders_of_tools_hold_for_what_is_tracked(tmp_path: Path) -> None:
    names = ["lib/a.py", "lib/old/b.py", "lib/.ipynb_checkpoints/c.py", "lib/site-packages/d.py", "lib/gone.py"]
    root = repository(tmp_path, names, "lib/")
    (root / "lib" / "gone.py").unlink()
    assert found(root) == ["lib/a.py", "lib/old/b.py"]
    assert found(root, exclude=("old/",)) == ["lib/a.py"]
    assert found(root, exclude=("lib/",)) == []


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege on Windows")
def test_no_link_is_followed_to_what_is_tracked(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.py").write_text("import torch\n")
    root = repository(tmp_path / "root", ["lib/a.py", "lib/sub/a.py"], "lib/")
    shutil.rmtree(root / "lib" / "sub")
    (root / "lib" / "sub").symlink_to(outside)
    (root / "lib" / "a.py").unlink()
    (root / "lib" / "a.py").symlink_to(outside / "a.py")
    assert found(root) == []


def test_what_is_remembered_of_an_index_are_its_names(tmp_path: Path) -> None:
    path = repository(tmp_path, NAMES) / ".git" / "index"
    first = Index().look("tracked", path.as_posix())
    path.write_bytes(index(NAMES, 4))
    assert Index().look("tracked", path.as_posix()) == first
    path.write_bytes(index([*NAMES, "b.py"]))
    assert Index().look("tracked", path.as_posix()) != first


@GIT
@pytest.mark.parametrize("version", ["2", "4"])
def test_the_index_that_git_writes(tmp_path: Path, version: str) -> None:
    root = repository(tmp_path, NAMES, "configs/")
    shutil.rmtree(root / ".git")
    for arguments in (["init", "-q"], ["add", "-f", "."], ["update-index", "--index-version", version]):
        subprocess.run(["git", "-c", "core.autocrlf=false", *arguments], cwd=root, check=True)
    assert tracked_names(index_of(root.as_posix())) == sorted([*NAMES, ".gitignore"])
    assert found(root) == sorted(NAMES)
