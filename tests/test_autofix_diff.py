"""The patch is what git says it is: real `git apply` in a new repository, compared byte by byte."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldlm_lint.autofix.diff import patch_base, unified_diff

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
LONG = [f"line {number}\n".encode() for number in range(60)]
CASES = {
    "plain.py": (b"a\nb\nc\n", b"a\nB\nc\n"),
    "crlf.py": (b"a\r\nb\r\nc\r\n", b"a\r\nB\r\nc\r\n"),
    "mixed.sh": (b"a\r\nb\nc\rd\n", b"a\r\nB\nc\rd\n"),
    "no_newline.py": (b"a\nb", b"a\nc"),
    "newline_added.py": (b"a\nb", b"a\nb\n"),
    "newline_removed.py": (b"a\nb\n", b"a\nb"),
    "last_line_above.py": (b"a\nb\nc", b"A\nb\nc"),
    "bom.py": (b"\xef\xbb\xbfa\nb\n", b"\xef\xbb\xbfA\nb\n"),
    "latin-1.py": (b"# coding: latin-1\n'\xe4\xff'\nb\n", b"# coding: latin-1\n'\xe4\xff'\nB\n"),
    "separators.py": ("a\u2028b\x0cc\x85\nd\n".encode(), "a\u2028b\x0cc\x85\nD\n".encode()),
    "emptied.sh": (b"a\n", b""),
    "filled.sh": (b"", b"a\n"),
    "hunks.py": (b"".join(LONG), b"".join([b"new\n", *LONG[:30], *LONG[31:]])),
    "dashes.sh": (b"-- a\n++ b\n", b"-- b\n++ b\n"),
    "sub/with blank.py": (b"a\n", b"b\n"),
    "b\u00e4r/n\u00e4me \u20ac.py": (b"a\n", b"b\n"),
    " leading.py": (b"a\n", b"b\n"),
    "a/b/a b/b.py": (b"a\n", b"b\n"),
    "unchanged.py": (b"a\n", b"a\n"),
}
POSIX_CASES = {
    'quo"te.sh': (b"a\n", b"b\n"),
    "back\\slash.sh": (b"a\n", b"b\n"),
    "tab\tnewline\nbell\x07\x7f.sh": (b"a\n", b"b\n"),
    "raw\udcff.sh": (b"a\n", b"b\n"),
    "trailing ": (b"a\n", b"b\n"),
}


def git(folder: Path, *arguments: str, data: bytes = b"") -> bytes:
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    command = ["git", "-c", "core.autocrlf=false", *arguments]
    done = subprocess.run(command, cwd=folder, input=data, capture_output=True, env=environment)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return done.stdout


def create(folder: Path, contents: dict[str, bytes]) -> dict[str, bytes]:
    """Write the files; the same contents by the paths that spans use."""
    for name, data in contents.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return {(folder / name).as_posix(): data for name, data in contents.items()}


def check_round_trip(base: Path, cases: dict[str, tuple[bytes, bytes]]) -> bytes:
    git(base, "init", "-q")
    before = create(base, {name: old for name, (old, _) in cases.items()})
    after = {(base / name).as_posix(): new for name, (_, new) in cases.items()}
    patch = unified_diff(base, before, after)
    git(base, "apply", "--check", data=patch)
    git(base, "apply", "--whitespace=nowarn", data=patch)
    assert {path: Path(path).read_bytes() for path in after} == after
    git(base, "apply", "-R", "--whitespace=nowarn", data=patch)
    assert {path: Path(path).read_bytes() for path in before} == before
    return patch


def test_git_applies_every_case_at_once(tmp_path: Path) -> None:
    cases = CASES if os.name == "nt" else {**CASES, **POSIX_CASES}
    patch = check_round_trip(tmp_path, cases)
    assert b"unchanged" not in patch
    assert patch == unified_diff(
        tmp_path,
        {(tmp_path / name).as_posix(): old for name, (old, _) in reversed(cases.items())},
        {(tmp_path / name).as_posix(): new for name, (_, new) in reversed(cases.items())},
    )


def test_git_applies_from_a_folder_of_the_repository(tmp_path: Path) -> None:
    folder = tmp_path / "sub"
    folder.mkdir()
    assert patch_base(folder) == folder
    git(tmp_path, "init", "-q")
    assert patch_base(folder) == patch_base(tmp_path) == tmp_path
    before = create(folder, {name: old for name, (old, _) in CASES.items()})
    after = {(folder / name).as_posix(): new for name, (_, new) in CASES.items()}
    git(folder, "apply", "--whitespace=nowarn", data=unified_diff(patch_base(folder), before, after))
    assert {path: Path(path).read_bytes() for path in after} == after


def test_the_patch_is_the_one_that_git_writes(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    names = ["plain.py", "no_newline.py", "crlf.py", "sub/with blank.py", "b\u00e4r/n\u00e4me \u20ac.py", "hunks.py"]
    before = create(tmp_path, {name: CASES[name][0] for name in names})
    git(tmp_path, "add", "-A")
    after = create(tmp_path, {name: CASES[name][1] for name in names})
    written = git(tmp_path, "diff", "--no-color").splitlines(keepends=True)
    ours = unified_diff(tmp_path, before, after).splitlines(keepends=True)

    def comparable(lines: list[bytes]) -> list[bytes]:
        # Git appends the nearest unindented line to a hunk's header, which is for readers only.
        cut = [b"@@".join(line.split(b"@@")[:2]) + b"@@\n" if line.startswith(b"@@") else line for line in lines]
        return [line for line in cut if not line.startswith(b"index ")]

    assert comparable(ours) == comparable(written)


def test_nothing_to_change_is_an_empty_patch(tmp_path: Path) -> None:
    assert unified_diff(tmp_path, {"/a": b"x"}, {"/a": b"x"}) == b""


def test_a_file_outside_keeps_its_path(tmp_path: Path) -> None:
    path = (tmp_path.parent / "other.py").as_posix()
    name = Path(path).relative_to(Path(path).anchor).as_posix()
    assert unified_diff(tmp_path, {path: b"a"}, {path: b"b"}).startswith(f"diff --git a/{name} b/{name}\n".encode())


lines = st.lists(st.sampled_from([b"a\n", b"b\n", b"\n", b"c\r\n", b"\xff\n", b"\\ No newline\n", b"-x\n"]), max_size=8)
tails = st.sampled_from([b"", b"", b"end", b"\r"])


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(lines, tails, lines, tails), min_size=1, max_size=12))
def test_git_applies_generated_changes(tmp_path_factory: pytest.TempPathFactory, pairs: list) -> None:
    cases = {
        f"{index}.sh": (b"".join(old) + old_tail, b"".join(new) + new_tail)
        for index, (old, old_tail, new, new_tail) in enumerate([*pairs, ([b"a\n"], b"", [], b"end")])
    }
    base = tmp_path_factory.mktemp("generated")
    check_round_trip(base, cases)
