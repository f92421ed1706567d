"""`ldlm-lint check --watch`: the check again after each change of something that it rests on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from editor_project import AMP, AMP_FIXED, DATA, PYPROJECT, TRAIN

from ldlm_lint.cli import main
from ldlm_lint.commands import watching

Step = Callable[[], object]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in {"amp.py": AMP, "pyproject.toml": PYPROJECT}.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def watch(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    """Run the command; it finds the work of one step done each time it has slept, and Ctrl-C when all are done."""

    def run(steps: list[Step], *arguments: str) -> tuple[int, list[str], str]:
        waiting = iter(steps)

        def sleep(seconds: float) -> None:
            # The pause in which nothing may change is not the time of an editor.
            if seconds != watching.QUIET:
                step = next(waiting, None)
                if step is None:
                    raise KeyboardInterrupt
                step()

        monkeypatch.setattr(watching.time, "sleep", sleep)
        code = main(["check", "--watch", "--format", "concise", *arguments])
        said = capsys.readouterr()
        rounds = said.err.split("watching ")[1:]
        assert len(rounds) >= 1
        return code, [line for line in said.out.splitlines() if ": " in line], said.err

    return run


def rounds(err: str) -> int:
    return err.count("] watching ")


def test_a_change_is_checked_and_nothing_else(root: Path, watch) -> None:
    def touched() -> None:
        os.utime(root / "amp.py", (1, 1))

    def other() -> None:
        (root / "notes.txt").write_text("nothing of ours")

    fixed = lambda: (root / "amp.py").write_text(AMP_FIXED)  # noqa: E731
    code, lines, err = watch([lambda: None, touched, other, fixed, lambda: None])
    assert code == 0 and rounds(err) == 2
    assert [line.partition(" ")[0] for line in lines if "amp.py" in line] == ["amp.py:5:33:"]


def test_new_and_deleted_files_count(root: Path, watch) -> None:
    steps: list[Step] = [
        (root / "amp.py").unlink,
        lambda: (root / "sub").mkdir(),
        lambda: (root / "sub" / "new.py").write_text(AMP),
    ]
    _, lines, err = watch(steps)
    assert [line.partition(":")[0] for line in lines if "W7801" in line] == ["amp.py", "sub/new.py"]
    assert rounds(err) == 3 and "no Python file, shell script or configuration file" in err


def test_a_named_file_that_vanishes_may_come_back(root: Path, watch) -> None:
    _, lines, err = watch([(root / "amp.py").unlink, lambda: (root / "amp.py").write_text(AMP + AMP)], "amp.py")
    assert len([line for line in lines if "W7801" in line]) == 1 + 2 and "no such file" in err


def test_another_file_of_the_project_counts(root: Path, watch) -> None:
    (root / "data.py").write_text(DATA)
    _, lines, err = watch([lambda: (root / "train.py").write_text(TRAIN)], "data.py")
    assert rounds(err) == 2 and [line for line in lines if "train.py:10" in line]


def test_a_configuration_that_is_being_edited_may_be_wrong(root: Path, watch) -> None:
    settings = root / "pyproject.toml"
    steps: list[Step] = [
        lambda: settings.write_text("[tool.ldlm-lint"),
        lambda: settings.write_text("[tool.ldlm-lint]\nselct = []\n"),
        lambda: settings.write_text("[tool.ldlm-lint]\nignore = ['W7801']\n"),
    ]
    code, lines, err = watch(steps)
    assert code == 0 and rounds(err) == 4 and 'did you mean "select"' in err
    assert len([line for line in lines if "W7801" in line]) == 1


def test_saves_in_quick_succession_are_one_change(root: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) > 8:
            raise KeyboardInterrupt
        if len(pauses) < 5:
            (root / "amp.py").write_text(AMP + "#" * len(pauses))

    monkeypatch.setattr(watching.time, "sleep", sleep)
    assert main(["--watch", "--format", "concise"]) == 0
    assert rounds(capsys.readouterr().err) == 2


def test_what_fix_writes_is_no_news(root: Path, watch) -> None:
    code, _, err = watch([lambda: None, lambda: None], "--fix")
    assert code == 0 and rounds(err) == 1 and (root / "amp.py").read_text() == AMP_FIXED


@pytest.mark.parametrize("other", ["--diff", "--add-ignores", "--output=x", "--show-files", "--show-settings"])
def test_what_makes_no_sense_is_refused(root: Path, other: str, capsys) -> None:
    assert main(["--watch", other]) == 2
    assert "--watch cannot be combined" in capsys.readouterr().err


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_the_program_ends_with_0_on_ctrl_c(root: Path) -> None:
    command = [sys.executable, "-m", "ldlm_lint", "--watch", "--format", "concise"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        guard = threading.Timer(60, process.kill)
        guard.start()
        assert process.stdout is not None and process.stderr is not None
        assert "amp.py:5:33" in process.stdout.readline()
        while "watching" not in process.stderr.readline():
            continue
        (root / "amp.py").write_text("\n" + AMP)
        while not (line := process.stdout.readline()).startswith("amp.py"):
            continue
        assert "amp.py:6:33" in line
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
        guard.cancel()


SWALLOWED = """
import signal, sys
from ldlm_lint.cli import main
from ldlm_lint.commands import watching

class Late:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)

once = watching._once

def late(*arguments):
    once(*arguments)
    Late()

watching._once = late
sys.exit(main(["--watch", "--format", "concise"]))
"""


def test_ctrl_c_that_a_finalizer_swallows_ends_it_too(root: Path) -> None:
    done = subprocess.run([sys.executable, "-c", SWALLOWED], capture_output=True, text=True, timeout=30)
    assert done.returncode == 0 and "KeyboardInterrupt" in done.stderr
