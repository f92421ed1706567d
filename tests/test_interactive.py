"""``--fix --interactive``: what is asked, what the answers do, and that nothing is written before the last one."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ldlm_lint.cli import main
from ldlm_lint.commands.interactive import HELP, QUESTION, Asking
from ldlm_lint.model import Applicability, Edit, Finding, Fix, Report, Span
from ldlm_lint.rules import by_symbol
from ldlm_lint.source import Kind, Source

PROGRAM = """import torch

scaler = torch.cuda.amp.GradScaler()
other = torch.cuda.amp.GradScaler(enabled=False)
state = torch.load("a.pt", map_location="cpu")
"""
FIRST = ("torch.cuda.amp.GradScaler()", 'torch.amp.GradScaler("cuda")')
SECOND = ("torch.cuda.amp.GradScaler(e", 'torch.amp.GradScaler("cuda", e')
COMMAND = ["--isolated", "--select", "deprecated-amp-api,checkpoint-load-unspecified", "--fix", "--interactive"]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "train.py").write_text(PROGRAM)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def answered(project: Path, answers: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(sys, "stdin", io.StringIO(answers))
    main([*COMMAND, "."])
    return (project / "train.py").read_text()


def changed(*pairs: tuple[str, str]) -> str:
    text = PROGRAM
    for old, new in pairs:
        text = text.replace(old, new)
    return text


@pytest.mark.parametrize(
    ("answers", "pairs"),
    [
        ("n\nn\n", []),
        ("y\nn\n", [FIRST]),
        ("no\nYES\n", [SECOND]),
        # What is only shown is not asked about, whatever comes.
        ("y\ny\ny\n", [FIRST, SECOND]),
        # All of a rule, or none.
        ("a\n", [FIRST, SECOND]),
        ("s\ny\n", []),
        ("n\na\nq\n", [SECOND]),
        # What was accepted before the end is applied, wherever the end comes from.
        ("y\nq\n", [FIRST]),
        ("y\n", [FIRST]),
        ("", []),
        ("q\ny\n", []),
        # Help, and what is no answer, ask again.
        ("?\n\nx\ny\nq\n", [FIRST]),
    ],
)
def test_answers(project: Path, monkeypatch: pytest.MonkeyPatch, answers: str, pairs: list[tuple[str, str]]) -> None:
    assert answered(project, answers, monkeypatch) == changed(*pairs)


def test_a_question_shows_finding_reason_and_diff(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answered(project, "?\nn\ny\n", monkeypatch)
    output = capsys.readouterr().out
    assert output.count(QUESTION) == 3
    assert HELP in output
    first, _, rest = output.partition(QUESTION)
    assert "W7801" in first
    assert "--> train.py:3:10" in first
    assert "fix 1 of 2: use torch.amp.GradScaler" in first
    assert "unsafe fix: needs torch >= 2.4; set `target-torch`" in first
    assert "--- a/train.py\n+++ b/train.py\n@@ -1,5 +1,5 @@\n" in first
    assert '\n-scaler = torch.cuda.amp.GradScaler()\n+scaler = torch.amp.GradScaler("cuda")\n other = ' in first
    assert "Fixed 1 finding in 1 file:" in rest


def test_what_is_only_shown_is_not_asked_about(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "weights_only" not in answered(project, "y\n" * 9, monkeypatch)
    output = capsys.readouterr().out
    assert output.count(QUESTION) == 2
    assert "not applied by --fix: `weights_only=True` fails on checkpoints with other objects" in output


def test_one_run_is_undone_at_once(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert answered(project, "a\n", monkeypatch) != PROGRAM
    assert main(["undo"]) == 0
    assert (project / "train.py").read_text() == PROGRAM


@pytest.mark.parametrize(
    "arguments",
    [["--interactive"], ["--fix", "--interactive", "--format", "json"], ["--fix", "--interactive", "--diff"]],
)
def test_usage(project: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*arguments, "."]) == 2
    assert "--interactive asks about each fix" in capsys.readouterr().err


def test_a_process_without_input_changes_nothing(project: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ldlm_lint", *COMMAND, "."],
        cwd=project,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 1
    assert (project / "train.py").read_text() == PROGRAM


def proposal(rule: str, *edits: tuple[str, int, int, str], level: Applicability = Applicability.UNSAFE) -> Finding:
    changes = tuple(Edit(Span(path, start, end), text) for path, start, end, text in edits)
    return Finding(rule, "W7801", changes[0].span, fix=Fix("change it", changes, level, "why"))


def report_of(*findings: Finding, **contents: bytes) -> Report:
    data = {"/a.py": b"a = 1\nb = 2\n", "/b.py": b"c = 3\n", **contents}
    sources = {path: Source.from_bytes(path, one, Kind.PYTHON) for path, one in data.items()}
    return Report(findings, sources=sources)


def test_a_fix_of_several_files_and_findings_is_one_question() -> None:
    output = io.StringIO()
    asking = Asking(Path("/"), by_symbol, io.StringIO("y\n"), output)
    one = proposal("deprecated-amp-api", ("/a.py", 4, 5, "5"), ("/b.py", 4, 5, "6"))
    other = Finding("checkpoint-load-unspecified", "W7604", Span("/b.py", 0, 1), fix=one.fix)
    assert asking.accepted(report_of(one, other)) == [one, other]
    text = output.getvalue()
    assert text.count(QUESTION) == 1
    assert "also for: W7604 checkpoint-load-unspecified at b.py:1:1" in text
    assert "--- a/a.py" in text
    assert "--- a/b.py" in text


def test_later_rounds_ask_about_new_fixes_only() -> None:
    output = io.StringIO()
    asking = Asking(Path("/"), by_symbol, io.StringIO("n\ny\nn\n"), output)
    refused, accepted = (
        proposal("deprecated-amp-api", ("/a.py", 4, 5, "5")),
        proposal("deprecated-amp-api", ("/b.py", 4, 5, "6")),
    )
    assert asking.accepted(report_of(refused, accepted)) == [accepted]
    assert asking.accepted(report_of(refused, accepted)) == [accepted]
    # The refused one has moved by a line; the third is new.
    moved, new = (
        proposal("deprecated-amp-api", ("/a.py", 6, 7, "5")),
        proposal("deprecated-amp-api", ("/a.py", 12, 13, "7")),
    )
    assert asking.accepted(report_of(moved, new, **{"/a.py": b"\n\na = 1\nb = 2\n"})) == []
    assert output.getvalue().count(QUESTION) == 3


def test_a_fix_that_shares_a_skipped_rule_is_still_asked_about() -> None:
    asking = Asking(Path("/"), by_symbol, io.StringIO("s\ny\n"), io.StringIO())
    skipped = proposal("deprecated-amp-api", ("/a.py", 4, 5, "5"))
    both = proposal("deprecated-amp-api", ("/b.py", 4, 5, "6"))
    shared = Finding("ineffective-environment-variable", "W7204", Span("/b.py", 0, 1), fix=both.fix)
    assert asking.accepted(report_of(skipped, both, shared)) == [both, shared]


def test_what_leads_to_the_worst_is_asked_about_first() -> None:
    asking = Asking(Path("/"), by_symbol, io.StringIO("y\nn\n"), io.StringIO())
    renamed = proposal("deprecated-amp-api", ("/a.py", 4, 5, "5"))
    hang = proposal("excessive-collective-timeout", ("/b.py", 4, 5, "6"))
    assert asking.accepted(report_of(renamed, hang)) == [hang]


def test_what_cannot_be_applied_is_not_asked_about() -> None:
    asking = Asking(Path("/"), by_symbol, io.StringIO("y\ny\n"), io.StringIO())
    beyond, elsewhere = (
        proposal("deprecated-amp-api", ("/a.py", 4, 99, "")),
        proposal("deprecated-amp-api", ("/c.py", 0, 1, "")),
    )
    same = proposal("deprecated-amp-api", ("/a.py", 4, 5, "1"))
    assert asking.accepted(report_of(beyond, elsewhere, same)) == []


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo terminals")
class TestTerminal:
    """The same through a pseudo terminal, as a person sees it."""

    def start(self, project: Path) -> tuple[subprocess.Popen[bytes], int]:
        import pty
        import termios

        ours, theirs = pty.openpty()
        modes = termios.tcgetattr(theirs)
        # Else Linux throws away, a moment after the signal of Ctrl-C, what the process has written by then.
        modes[3] |= termios.NOFLSH
        termios.tcsetattr(theirs, termios.TCSANOW, modes)
        command = [sys.executable, "-m", "ldlm_lint", *COMMAND, "."]
        environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "200"}
        environment.pop("NO_COLOR", None)

        def own_terminal() -> None:
            import fcntl

            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        process = subprocess.Popen(
            command, cwd=project, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, preexec_fn=own_terminal
        )
        os.close(theirs)
        return process, ours

    def until(self, terminal: int, text: bytes) -> bytes:
        seen, limit = b"", time.monotonic() + 60
        while text not in seen and time.monotonic() < limit:
            try:
                piece = os.read(terminal, 4096)
            except OSError:
                # Linux says so at the end of what the process wrote.
                break
            if not piece:
                break
            seen += piece
        return seen

    def rest(self, process: subprocess.Popen[bytes], terminal: int, codes: tuple[int, ...]) -> bytes:
        """What the process still writes; the terminal must stay open until it has ended."""
        text = self.until(terminal, b"never written")
        assert process.wait(60) in codes
        os.close(terminal)
        return text

    def test_answers_are_typed_and_the_diff_is_coloured(self, project: Path) -> None:
        process, terminal = self.start(project)
        first = self.until(terminal, b"[q]uit ? ")
        assert b"\x1b[32m+scaler = torch.amp.GradScaler" in first
        os.write(terminal, b"y\n")
        self.until(terminal, b"[q]uit ? ")
        os.write(terminal, b"q\n")
        rest = self.rest(process, terminal, (1,))
        assert b"Fixed 1 finding" in rest
        assert (project / "train.py").read_text() == changed(FIRST)

    def test_ctrl_c_writes_nothing(self, project: Path) -> None:
        process, terminal = self.start(project)
        self.until(terminal, b"[q]uit ? ")
        os.write(terminal, b"y\n")
        self.until(terminal, b"[q]uit ? ")
        os.write(terminal, b"\x03")
        rest = self.rest(process, terminal, (130, -signal.SIGINT))
        assert b"interrupted" in rest
        assert (project / "train.py").read_text() == PROGRAM

    def test_the_end_of_the_input_ends_the_questions(self, project: Path) -> None:
        process, terminal = self.start(project)
        self.until(terminal, b"[q]uit ? ")
        os.write(terminal, b"y\n")
        self.until(terminal, b"[q]uit ? ")
        os.write(terminal, b"\x04")
        self.rest(process, terminal, (1,))
        assert (project / "train.py").read_text() == changed(FIRST)
