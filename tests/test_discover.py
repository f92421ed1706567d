"""Which files are found below a path, and one clear problem for every path that cannot be walked."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from collected import for_every

from ldlm_lint.config import Config
from ldlm_lint.discover import Discovery, discover, kind_of
from ldlm_lint.source import Kind

LINKS = pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege on Windows")


def make(root: Path, *files: str, **contents: str) -> None:
    for name in files:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(contents.get(name, ""))


def ignore(directory: Path, *lines: str, name: str = ".gitignore") -> None:
    path = directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")


def find(root: Path, *paths: str, exclude: tuple[str, ...] = ()) -> Discovery:
    config = Config(root=root.as_posix(), exclude=exclude)
    return discover([root / path for path in paths or (".",)], config, root)


def names(root: Path, found: Discovery) -> list[str]:
    return [path.relative_to(root).as_posix() for path, _ in found.files]


def problems(root: Path, found: Discovery) -> list[tuple[str, str]]:
    return [(Path(one.path).relative_to(root).as_posix(), one.message) for one in found.problems]


@for_every(
    "name, first_line, expected",
    [
        ("a.py", "", Kind.PYTHON),
        ("a.pyi", "", Kind.PYTHON),
        ("A.PYW", "", Kind.PYTHON),
        ("a.sh", "", Kind.SHELL),
        ("run", "#!/bin/bash", Kind.SHELL),
        ("run", "#!/usr/bin/env bash", Kind.SHELL),
        ("run", "#!/usr/bin/env python3", Kind.PYTHON),
        ("run", "#!/usr/bin/env -S python3 -u", Kind.PYTHON),
        ("run", "#!/opt/conda/bin/python3.11", Kind.PYTHON),
        ("run", "#! /usr/bin/python", Kind.PYTHON),
        ("run", "#!/usr/bin/pythonic", None),
        ("run", "#!/usr/bin/perl", None),
        ("run", "import torch", None),
        ("run", "", None),
        ("data.csv", "#!/usr/bin/env python3", None),
    ],
)
def test_kind(tmp_path: Path, name: str, first_line: str, expected: Kind | None) -> None:
    path = tmp_path / name
    path.write_text(first_line + "\n")
    assert kind_of(path) is expected


def test_walk_is_sorted_and_leaves_tool_directories_out(tmp_path: Path) -> None:
    make(tmp_path, "b.py", "a/z.sh", "a/b.py", "README.md", ".venv/x.py", "a/__pycache__/b.py", "node_modules/m.py")
    make(tmp_path, "lib/site-packages/p.py", "build/kept.py", "dist/kept.py", ".hidden/kept.py", "env/kept.py")
    found = find(tmp_path)
    assert names(tmp_path, found) == [
        ".hidden/kept.py", "a/b.py", "a/z.sh", "b.py", "build/kept.py", "dist/kept.py", "env/kept.py"
    ]  # fmt: skip
    assert found.problems == ()


def test_components_above_the_path_do_not_count(tmp_path: Path) -> None:
    root = tmp_path / "node_modules" / "build" / "project"
    make(root, "a.py")
    assert names(root, find(root)) == ["a.py"]


def test_gitignore_of_every_level(tmp_path: Path) -> None:
    make(tmp_path, "a.py", "log.py", "out/x.py", "pkg/a.py", "pkg/gen.py", "pkg/log.py", "pkg/deep/gen.py", "local.py")
    ignore(tmp_path, "out/", "log.py", "# comment", "", "!")
    ignore(tmp_path / "pkg", "/gen.py", "!log.py")
    ignore(tmp_path / ".git", "local.py", name="info/exclude")
    assert names(tmp_path, find(tmp_path)) == ["a.py", "pkg/a.py", "pkg/deep/gen.py", "pkg/log.py"]


def test_a_range_the_wrong_way_round_matches_nothing_as_in_git(tmp_path: Path) -> None:
    ignore(tmp_path, "[z-a]", "out.py")
    for name in ("a.py", "out.py"):
        (tmp_path / name).write_text("x = 1\n")
    assert [path.name for path, _ in discover([tmp_path], Config(), tmp_path).files] == ["a.py"]


def test_gitignore_above_the_named_directory_holds(tmp_path: Path) -> None:
    make(tmp_path, ".git/HEAD", "pkg/a.py", "pkg/wandb/run.py")
    ignore(tmp_path, "wandb/")
    assert names(tmp_path, find(tmp_path, "pkg")) == ["pkg/a.py"]


def test_named_paths_are_taken_although_git_ignores_them(tmp_path: Path) -> None:
    make(tmp_path, ".git/HEAD", "out/a.py", "out/wandb/run.py", "single.py")
    ignore(tmp_path, "out/", "single.py", "wandb/")
    assert names(tmp_path, find(tmp_path, "out")) == ["out/a.py"]
    assert names(tmp_path, find(tmp_path, "out/a.py", "single.py")) == ["out/a.py", "single.py"]


def test_git_of_an_outer_project_ends_at_the_inner_repository(tmp_path: Path) -> None:
    make(tmp_path, "inner/.git/HEAD", "inner/a.py")
    ignore(tmp_path, "*.py")
    assert names(tmp_path, find(tmp_path, "inner")) == ["inner/a.py"]


def test_exclude_holds_for_named_paths_too_and_they_are_counted(tmp_path: Path) -> None:
    make(tmp_path, "a.py", "third_party/x.py", "third_party/deep/y.py", "b.bak.py")
    exclude = ("third_party/", "*.bak.py")
    assert names(tmp_path, find(tmp_path, exclude=exclude)) == ["a.py"]
    found = find(tmp_path, "third_party/deep/y.py", "third_party", "b.bak.py", "a.py", exclude=exclude)
    assert names(tmp_path, found) == ["a.py"]
    assert found.excluded == 3
    assert found.problems == ()


def test_a_file_is_found_once(tmp_path: Path) -> None:
    make(tmp_path, "a/b.py")
    assert names(tmp_path, find(tmp_path, "a", "a/b.py", "a", ".")) == ["a/b.py"]


def test_named_files_of_other_tools_and_of_data_are_passed_over(tmp_path):
    (tmp_path / "package.json").write_text("{}")
    (tmp_path / "data.json").write_text("[" + "1," * 600_000 + "1]")
    (tmp_path / "train.json").write_text("{}")
    found = discover([tmp_path / name for name in ("package.json", "data.json", "train.json")], Config(), tmp_path)
    assert [path.name for path, _ in found.files] == ["train.json"]
    assert (found.excluded, found.problems) == (2, ())


def test_problems_name_the_path_and_the_rest_goes_on(tmp_path: Path) -> None:
    make(tmp_path, "good.py", "README.md")
    (tmp_path / "empty").mkdir()
    found = find(tmp_path, "missing", "empty", "README.md", "good.py")
    assert names(tmp_path, found) == ["good.py"]
    assert problems(tmp_path, found) == [
        ("missing", "no such file or directory"),
        ("README.md", "neither Python nor a shell script nor a configuration file, not checked"),
        ("empty", "no Python file, shell script or configuration file to check here"),
    ]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
def test_named_pipe_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    make(tmp_path, "a.py")
    assert names(tmp_path, find(tmp_path)) == ["a.py"]
    assert problems(tmp_path, find(tmp_path, "pipe.py")) == [("pipe.py", "neither a file nor a directory")]


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="needs a user that permissions hold for")
def test_unreadable_directory(tmp_path: Path) -> None:
    make(tmp_path, "a.py", "secret/b.py")
    (tmp_path / "secret").chmod(0)
    try:
        found = find(tmp_path)
    finally:
        (tmp_path / "secret").chmod(0o755)
    assert names(tmp_path, found) == ["a.py"]
    assert problems(tmp_path, found) == [("secret", "cannot be read: Permission denied")]


def test_directory_that_cannot_be_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, "a.py", "secret/b.py")
    real = os.scandir

    def refuse(path: Path) -> object:
        if Path(path).name == "secret":
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(os, "scandir", refuse)
    found = find(tmp_path)
    assert names(tmp_path, found) == ["a.py"]
    assert problems(tmp_path, found) == [("secret", "cannot be read: Permission denied")]


@LINKS
def test_links_out_of_the_root_are_not_followed(tmp_path: Path) -> None:
    root = tmp_path / "project"
    make(root, "pyproject.toml", "a.py")
    make(tmp_path, "outside/b.py", "c.py")
    (root / "link").symlink_to(tmp_path / "outside")
    (root / "c.py").symlink_to(tmp_path / "c.py")
    assert names(root, find(root)) == ["a.py"]
    found = find(root, "link", "c.py", "a.py")
    assert names(root, found) == ["a.py"]
    where = root.resolve().as_posix()
    assert problems(root, found) == [
        ("link", f"symbolic link to a place outside {where}, not followed"),
        ("c.py", f"symbolic link to a place outside {where}, not followed"),
    ]


@LINKS
def test_links_inside_the_root_are_followed_once(tmp_path: Path) -> None:
    make(tmp_path, "real/b.py", "pkg/a.py", ".venv/x.py")
    (tmp_path / "alias").symlink_to(tmp_path / "real")
    (tmp_path / "pkg" / "b.py").symlink_to(tmp_path / "real" / "b.py")
    (tmp_path / "tools").symlink_to(tmp_path / ".venv")
    assert names(tmp_path, find(tmp_path)) == ["pkg/a.py", "real/b.py"]
    assert names(tmp_path, find(tmp_path, "pkg")) == ["pkg/a.py", "pkg/b.py"]
    assert names(tmp_path, find(tmp_path, "alias")) == ["alias/b.py"]


@LINKS
def test_loops_and_links_that_lead_nowhere(tmp_path: Path) -> None:
    make(tmp_path, "a/b.py")
    (tmp_path / "a" / "up").symlink_to(tmp_path)
    (tmp_path / "self").symlink_to(tmp_path / "self")
    (tmp_path / "gone.py").symlink_to(tmp_path / "nowhere.py")
    assert names(tmp_path, find(tmp_path)) == ["a/b.py"]
    found = find(tmp_path, "gone.py", "self", "a")
    assert names(tmp_path, found) == ["a/b.py"]
    assert problems(tmp_path, found)[0] == ("gone.py", "broken symbolic link")
    assert problems(tmp_path, found)[1][1].startswith("cannot be read: ")


@LINKS
def test_a_project_reached_through_a_link_is_checked(tmp_path: Path) -> None:
    make(tmp_path, "disk/project/pyproject.toml", "disk/project/a.py")
    (tmp_path / "work").mkdir()
    (tmp_path / "project").symlink_to(tmp_path / "disk" / "project")
    config = Config(root=(tmp_path / "project").as_posix())
    found = discover([tmp_path / "project"], config, tmp_path / "project")
    assert [path.as_posix() for path, _ in found.files] == [(tmp_path / "project" / "a.py").as_posix()]
    elsewhere = discover([tmp_path / "project"], Config(), tmp_path / "work")
    assert elsewhere.files == found.files
