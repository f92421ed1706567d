"""Bad input through the command: one clear line each, exit code 3 or 1, and the rest is linted all the same."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from calling import Enter, Run

from ldlm_lint import source

BEAT = "export TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=12000000\n"
WRAP = "from torch.nn.parallel import DistributedDataParallel as DDP\nmodel = DDP(net, find_unused_parameters=True)\n"



@pytest.fixture
def project(enter: Enter) -> Path:
    """A project with one good finding, entered; ``outside`` lies beside it."""
    return enter({"pyproject.toml": "", "run.sh": BEAT})


def lines_about(name: str, *texts: str) -> list[str]:
    return [line for text in texts for line in text.splitlines() if name in line]


@pytest.mark.parametrize(
    "name, data, line, words",
    [
        pytest.param("wide.py", "x = 1\n".encode("utf-16"), 1, "NUL bytes", id="utf-16"),
        pytest.param("wide_le.py", "x = 1\n".encode("utf-16-le"), 1, "NUL bytes", id="utf-16-without-mark"),
        pytest.param("latin.py", b"x = 1\ny = '\xe9'\n", 2, "not valid utf-8", id="latin-1-undeclared"),
        pytest.param("late.py", b"x = 1\n\n\ny = '\xe9'\n", 4, "not valid utf-8", id="far-below-the-cookie"),
        pytest.param("cookie.py", b"# coding: nope-8\n", 1, "its encoding is not known", id="unknown-cookie"),
        pytest.param("ascii.py", "# coding: ascii\nx = 'é'\n".encode(), 2, "not valid ascii", id="wrong-cookie"),
        pytest.param(
            "both.py",
            b"\xef\xbb\xbf# coding: latin-1\nx = 1\n",
            1,
            "its encoding is not known",
            id="mark-against-cookie",
        ),
        pytest.param("nul.py", b"x = 1\n\ny = '\0'\n", 3, "NUL bytes", id="nul"),
        pytest.param("nul.sh", b"echo\n\0\n", 2, "NUL bytes", id="nul-in-a-script"),
        pytest.param("latin.sh", b"# \xe9\n" + BEAT.encode(), 1, "not valid utf-8", id="script-in-latin-1"),
    ],
)
def test_unreadable_text_is_said_once(project: Path, run: Run, name: str, data: bytes, line: int, words: str) -> None:
    (project / name).write_bytes(data)
    for arguments in ((name, "run.sh"), (".",)):
        code, out, err = run("--quiet", *arguments)
        assert code == 3
        (said,) = lines_about(name, out, err)
        assert f"{name}:{line}" in said or line == 1
        assert words in out + err
        assert "excessive-heartbeat-timeout (W7201)" in out


@pytest.mark.parametrize(
    "name, data",
    [
        pytest.param("empty.py", b"", id="empty"),
        pytest.param("empty.sh", b"", id="empty-script"),
        pytest.param("blank.py", b"\n\n  \n", id="blank"),
        pytest.param("comment.py", b"# only a comment", id="comment"),
        pytest.param("mark.py", b"\xef\xbb\xbf", id="mark-alone"),
    ],
)
def test_nothing_in_it_is_no_problem(project: Path, run: Run, name: str, data: bytes) -> None:
    (project / name).write_bytes(data)
    code, out, err = run(name)
    assert (code, err) == (0, "")
    assert out == "No findings.\n1 file read.\n"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32"])
def test_json_in_another_encoding_is_data(project: Path, run: Run, encoding: str) -> None:
    (project / "vocabulary.json").write_bytes('{"0": "\\n", "1": "a"}\n'.encode(encoding))
    (project / "nul.json").write_bytes(b'{"a": "\0"}\n')
    code, out, err = run("vocabulary.json")
    assert (code, err) == (0, "note: vocabulary.json: not checked: it is a file of another tool\n")
    code, out, err = run("nul.json")
    assert code == 3
    assert "NUL bytes" in out + err


@pytest.mark.parametrize(
    "data, column",
    [
        pytest.param("# coding: latin-1\nname = 'é'\n".encode("latin-1") + WRAP.encode(), 18, id="latin-1"),
        pytest.param(b"\xef\xbb\xbf" + WRAP.encode(), 18, id="byte-order-mark"),
        pytest.param(WRAP.replace("\n", "\r\n").encode(), 18, id="windows"),
        pytest.param(WRAP.replace("\n", "\r").encode(), 18, id="old-mac"),
        pytest.param(WRAP.replace("model", "модель").encode(), 19, id="wide-characters"),
        pytest.param(WRAP.replace("\nmodel", "\n\x0cmodel").encode(), 19, id="form-feed"),
    ],
)
def test_position_in_unusual_text(project: Path, run: Run, data: bytes, column: int) -> None:
    (project / "wrap.py").write_bytes(data)
    code, out, _ = run("wrap.py")
    assert code == 1
    lines = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").count(b"\n")
    assert f"wrap.py:{lines}:{column}" in out


def test_script_with_windows_line_ends(project: Path, run: Run) -> None:
    (project / "run.sh").write_bytes(b"#!/bin/bash\r\n" + BEAT.replace("\n", "\r\n").encode())
    code, out, err = run("run.sh")
    assert (code, err) == (1, "")
    assert "run.sh:2:8" in out


def test_huge_file(project: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "MAX_BYTES", 1000)
    (project / "huge.py").write_text("x = 1\n" * 200)
    (project / "large.py").write_text("x = 1\n" * 100)
    code, out, err = run(".")
    assert code == 3
    assert "larger than 1,000 bytes (1,200)" in out + err
    assert lines_about("large.py", out, err) == []
    assert "W7201" in out


def test_missing_path(project: Path, run: Run) -> None:
    code, out, err = run("missing.py", "run.sh")
    assert (code, err) == (3, "error: missing.py: no such file or directory\n")
    assert "W7201" in out


def test_empty_directory(project: Path, run: Run) -> None:
    (project / "empty").mkdir()
    code, out, err = run("empty", "run.sh")
    assert (code, err) == (3, "error: empty: no Python file, shell script or configuration file to check here\n")
    assert "W7201" in out


def test_directory_that_is_called_like_a_file(project: Path, run: Run) -> None:
    (project / "model.py").mkdir()
    (project / "model.py" / "wrap.py").write_text(WRAP)
    code, out, err = run(".")
    assert (code, err) == (1, "")
    assert os.path.join("model.py", "wrap.py").replace(os.sep, "/") in out.replace(os.sep, "/")


def test_neither_file_nor_directory(project: Path, run: Run) -> None:
    if not hasattr(os, "mkfifo"):
        pytest.skip("this system has no named pipes")
    os.mkfifo(project / "pipe.py")
    code, _, err = run("pipe.py", "run.sh")
    assert (code, err) == (3, "error: pipe.py: neither a file nor a directory\n")
    code, out, err = run(".")
    assert (code, err) == (1, "")
    assert "W7201" in out


def link(path: Path, target: Path | str) -> None:
    try:
        path.symlink_to(target)
    except OSError:
        pytest.skip("this system does not let us make links")


def test_link_out_of_the_root(project: Path, run: Run) -> None:
    outside = project.parent / "outside.py"
    outside.write_text(WRAP)
    link(project / "out.py", outside)
    code, _, err = run("out.py", "run.sh")
    assert code == 3
    assert err == f"error: out.py: symbolic link to a place outside {project.resolve().as_posix()}, not followed\n"
    code, out, err = run(".")
    assert (code, err) == (1, "")
    assert "out.py" not in out


def test_link_to_a_directory_outside(project: Path, run: Run) -> None:
    outside = project.parent / "outside"
    outside.mkdir()
    (outside / "wrap.py").write_text(WRAP)
    link(project / "more", outside)
    code, out, _ = run(".")
    assert code == 1
    assert "wrap.py" not in out


@pytest.mark.parametrize("target", ["loop.py", "."], ids=["to-itself", "to-its-folder"])
def test_link_in_a_circle(project: Path, run: Run, target: str) -> None:
    link(project / "loop.py", target)
    code, out, err = run(".")
    assert (code, err) == (1, "")
    assert out.count("W7201") == 1


def test_link_that_leads_nowhere(project: Path, run: Run) -> None:
    link(project / "gone.py", "nowhere.py")
    code, _, err = run("gone.py", "run.sh")
    assert (code, err) == (3, "error: gone.py: broken symbolic link\n")
    assert run(".")[0] == 1


def test_file_without_permission(project: Path, run: Run) -> None:
    path = project / "secret.py"
    path.write_text(WRAP)
    path.chmod(0)
    try:
        readable = bool(path.read_bytes())
    except OSError:
        readable = False
    if readable:
        pytest.skip("this user reads every file")
    code, out, err = run(".")
    path.chmod(0o644)
    assert code == 3
    assert len(lines_about("secret.py", out, err)) == 1
    assert "W7201" in out


def test_syntax_error_and_what_stands_before_it(project: Path, run: Run) -> None:
    (project / "wrap.py").write_text(WRAP + "def f():\n    return = 3\n")
    code, out, err = run("wrap.py", "run.sh")
    assert (code, err) == (1, "")
    assert [word for word in ("W7226", "E6802", "W7201") if word in out] == ["W7226", "E6802", "W7201"]
    assert "wrap.py:4:5" in out


def test_broken_script_is_read_as_far_as_it_goes(project: Path, run: Run) -> None:
    (project / "run.sh").write_text(BEAT + 'if [ "$1" ; then\n  echo "open\n')
    code, out, _ = run("run.sh")
    assert code == 1
    assert "W7201" in out


def test_all_of_it_at_once(project: Path, run: Run) -> None:
    (project / "nul.py").write_bytes(b"\0")
    (project / "latin.py").write_bytes(b"\xe9")
    (project / "broken.py").write_text("x = (\n")
    (project / "wrap.py").write_text(WRAP)
    (project / "empty.py").write_text("")
    code, out, err = run("--quiet", ".", "missing.py")
    assert code == 3
    assert [
        name
        for name in ("nul.py", "latin.py", "broken.py", "wrap.py", "missing.py")
        if len(lines_about(name, out, err)) != 1
    ] == []
    assert "W7226" in out
    assert "W7201" in out


def test_name_that_is_no_text(project: Path, run: Run) -> None:
    name = os.fsdecode(b"caf\xe9.py")
    try:
        (project / name).write_text(WRAP)
    except OSError:
        pytest.skip("this file system takes only names that are text")
    code, out, _ = run(".")
    assert code == 1
    assert "W7226" in out


def test_script_whose_name_is_no_text(project: Path, run: Run) -> None:
    script = b"export NCCL_TIMEOUT=1800\nbash ./caf*.sh\ntorchrun --nproc_per_node=2 train.py\n"
    try:
        (project / os.fsdecode(b"caf\xe9.sh")).write_bytes(script)
    except OSError:
        pytest.skip("this file system takes only names that are text")
    (project / "train.py").write_text(WRAP)
    code, out, _ = run(".")
    assert code == 1
    assert "W7204" in out


def test_name_with_control_characters_stays_on_its_line(project: Path, run: Run) -> None:
    try:
        (project / "a\n\x1b[31mb.py").write_bytes(b"\0")
    except OSError:
        pytest.skip("this file system has no such names")
    code, out, err = run(".")
    assert code == 3
    assert "\x1b" not in out + err
    assert len(lines_about("b.py", out, err)) == 1
